"""Real Apache Kafka as the oracle: fetch it, run it, ask it what a file says."""
