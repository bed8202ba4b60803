"""Clients say who they are: SASL with PLAIN and SCRAM."""
