"""Kafka's files as Spark data sources."""
