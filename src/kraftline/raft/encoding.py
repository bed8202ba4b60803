"""Metadata records as one batch: null keys, no headers, one time for all of them.

Kafka refuses a metadata log whose batches have timestamp deltas other than 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.records.write import frame_batch, varint


def encode_batch(values: Sequence[bytes], base_offset: int, timestamp: int, epoch: int) -> bytes:
    """The batch whose records have these values."""
    out: list[bytes] = []
    for delta, value in enumerate(values):
        # Attributes 0 and timestamp delta 0; no key; no headers.
        number, length = varint(delta), varint(len(value))
        size = 4 + len(number) + len(length) + len(value)
        out += (varint(size), b"\x00\x00", number, b"\x01", length, value, b"\x00")
    return frame_batch(
        b"".join(out),
        count=len(values),
        base_offset=base_offset,
        last_offset=base_offset + len(values) - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        partition_leader_epoch=epoch,
    )
