"""Every message that Kafka defines, as data, and the one codec that reads and writes them."""
