"""Groups and their offsets, against real Kafka and by themselves."""
