"""Groups of consumers and the offsets that they commit: `__consumer_offsets`."""
