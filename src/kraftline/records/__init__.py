"""Bytes to batches and records and back: v2 batches, v0 and v1 message sets, checksums, codecs."""
