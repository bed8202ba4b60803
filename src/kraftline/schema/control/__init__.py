"""Control records: what brokers and controllers write into logs among the users' records."""
