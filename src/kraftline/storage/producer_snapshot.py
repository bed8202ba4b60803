"""`.snapshot`: what a partition knows of its producers up to the offset in the file's name.

version int16 = 1, CRC-32C (of what follows it), count int32, then 46 bytes per producer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import google_crc32c
import msgspec

from kraftline.errors import Corrupt, Truncated, Unsupported
from kraftline.storage.files import Path, Source, load, write_aside

VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_AFTER_CRC = 6


class ProducerEntry(msgspec.Struct, frozen=True, gc=False):
    """One producer. No batch of it is kept where `last_offset` is negative;
    `current_txn_first_offset` is -1 where no transaction is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def read_producer_snapshot(source: Source) -> tuple[ProducerEntry, ...]:
    """The producers, in the order of the file."""
    data, file = load(source)
    if len(data) < 2:
        raise Truncated("no room for a version", file=file, position=0)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != VERSION:
        raise Unsupported(f"version {version} of a producer snapshot", file=file, position=0)
    if len(data) < _HEADER.size:
        raise Truncated(f"{len(data)} bytes are no whole header", file=file, position=len(data))
    _, crc, count = _HEADER.unpack_from(data)
    computed = google_crc32c.value(data[_AFTER_CRC:])
    if crc != computed:
        raise Corrupt(
            f"the checksum is {computed:08x}, the file says {crc:08x}",
            file=file,
            position=2,
            hint="Kafka drops such a snapshot and reads the log again from an older one",
        )
    if count * _ENTRY.size != len(data) - _HEADER.size:
        raise Corrupt(
            f"{count} producers announced, {len(data) - _HEADER.size} bytes follow",
            file=file,
            position=_AFTER_CRC,
        )
    return tuple(ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :]))


def format_producer_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_ENTRY.pack(*msgspec.structs.astuple(entry)) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return struct.pack(">hI", VERSION, google_crc32c.value(body)) + body


def write_producer_snapshot(path: Path, entries: Iterable[ProducerEntry]) -> None:
    write_aside(path, format_producer_snapshot(entries))
