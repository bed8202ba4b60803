"""Tests of the message declarations and their codec."""
