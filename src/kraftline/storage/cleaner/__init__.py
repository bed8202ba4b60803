"""Compaction: of each key the last record stays, as Kafka's cleaner has it."""
