"""Bytes to batches and records and back: v2 batches, v0 and v1 message sets, checksums, codecs.

Start with `framing.batches` (bytes to batches), `batch.Batch`, `write.build_batch`; many records
at once are in `runs` (tuples, places), `arrow` and `column_reader` (columns).
"""
