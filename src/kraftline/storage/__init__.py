"""The files of a Kafka log directory: read and written, each format in its own module."""
