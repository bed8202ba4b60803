"""Kafka's configuration: what keys there are, what they may hold, and where a value came from."""
