"""A real Kafka for tests: `plugin` has the fixtures, which pytest finds by itself."""
