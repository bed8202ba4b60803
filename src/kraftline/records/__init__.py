"""Bytes to batches and records and back: v2 batches, v0 and v1 message sets, checksums, codecs."""

from kraftline.records.batch import Batch
from kraftline.records.compression import DEFAULT_LIMIT
from kraftline.records.framing import batches
from kraftline.records.record import Bytes, Codec, Header, Record, TimestampType
from kraftline.records.write import build_batch, empty_batch

__all__ = [
    "DEFAULT_LIMIT",
    "Batch",
    "Bytes",
    "Codec",
    "Header",
    "Record",
    "TimestampType",
    "batches",
    "build_batch",
    "empty_batch",
]
