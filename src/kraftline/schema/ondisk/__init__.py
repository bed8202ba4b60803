"""Small files of a log directory that Kafka defines as messages."""
