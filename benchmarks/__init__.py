"""Kraftline beside its rivals, on the same files, in the same run: `python -m benchmarks`."""
