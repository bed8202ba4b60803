"""Kraftline reads, writes, serves and explains Apache Kafka's own state."""

__version__ = "0.1.0"
