"""Kafka's files in Spark: data sources, and the jobs that build a lake of history from them."""
