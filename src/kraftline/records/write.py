"""Builds batches of all three formats, byte for byte as Kafka's own builder would.

(Compressed bytes may differ, since every library packs in its own way; headers, framing and what
is inside do not.)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import google_crc32c

from kraftline.errors import NotRepresentable
from kraftline.records.compression import compress
from kraftline.records.record import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Codec,
    Record,
    TimestampType,
)

_MAX_DELTA: Final = 0x7FFFFFFF

_front = struct.Struct(">qiib").pack  # base offset, length, leader epoch, magic
_back = struct.Struct(">hiqqqhii").pack  # attributes ... count: what the checksum covers
_entry = struct.Struct(">qi").pack
_i32 = struct.Struct(">i").pack


def build_batch(
    records: Sequence[Record],
    *,
    magic: int = 2,
    codec: Codec = Codec.NONE,
    base_offset: int | None = None,
    last_offset: int | None = None,
    timestamp_type: TimestampType = "CreateTime",
    log_append_time: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
) -> bytes:
    """The batch that holds these records, at their own offsets; b"" when there are none.

    `base_offset` and `last_offset` default to those of the records; compaction gives others.
    With LogAppendTime every record gets `log_append_time`. Formats v0 and v1 give one entry per
    record, or one wrapper when compressed.
    """
    if not records:
        return b""
    base = records[0].offset if base_offset is None else base_offset
    _refuse_disorder(records, base)
    _refuse_producer(
        magic, producer_id, producer_epoch, base_sequence, is_transactional, is_control
    )
    if magic < 2:
        if is_transactional or is_control or delete_horizon_ms is not None:
            raise NotRepresentable(f"format v{magic} has no transactions or control records")
        return _legacy(records, magic, codec, base, timestamp_type, log_append_time)
    if timestamp_type == "NoTimestampType":
        raise NotRepresentable("a batch of format v2 needs a timestamp type")
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = log_append_time
    if timestamp_type == "CreateTime":
        max_timestamp = max(NO_TIMESTAMP, *(record.timestamp for record in records))
    return frame_batch(
        compress(codec, encode_records(records, base, base_timestamp), level=level),
        count=len(records),
        codec=codec,
        base_offset=base,
        last_offset=records[-1].offset if last_offset is None else last_offset,
        timestamp_type=timestamp_type,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=is_transactional,
        is_control=is_control,
        has_delete_horizon=delete_horizon_ms is not None,
    )


def frame_batch(
    body: bytes,
    *,
    count: int,
    base_offset: int,
    last_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = "CreateTime",
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    has_delete_horizon: bool = False,
) -> bytes:
    """A v2 header in front of records that are encoded (and compressed) already.

    An empty body with count 0 is the batch that compaction leaves behind for a producer's sake;
    its base timestamp is -1.
    """
    if last_offset - base_offset > _MAX_DELTA:
        raise NotRepresentable(f"offsets {base_offset} to {last_offset} do not fit into a batch")
    attributes = (
        codec
        | (0x08 if timestamp_type == "LogAppendTime" else 0)
        | (0x10 if is_transactional else 0)
        | (0x20 if is_control else 0)
        | (0x40 if has_delete_horizon else 0)
    )
    covered = b"".join(
        (
            _back(
                attributes,
                last_offset - base_offset,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                count,
            ),
            body,
        )
    )
    front = _front(base_offset, 9 + len(covered), partition_leader_epoch, 2)
    return b"".join((front, google_crc32c.value(covered).to_bytes(4, "big"), covered))


def empty_batch(
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    *,
    timestamp_type: TimestampType = "CreateTime",
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """What compaction leaves of a batch whose last sequence a producer still needs."""
    return frame_batch(
        b"",
        count=0,
        base_offset=base_offset,
        last_offset=last_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        timestamp_type=timestamp_type,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=is_transactional,
        is_control=is_control,
    )


def encode_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytes:
    """The records of a v2 batch, without its header."""
    out: list[bytes] = []
    for record in records:
        parts = [
            b"\x00",
            varint(record.timestamp - base_timestamp),
            varint(record.offset - base_offset),
        ]
        for data in (record.key, record.value):
            if data is None:
                parts.append(b"\x01")
            else:
                parts += (varint(len(data)), data)
        parts.append(varint(len(record.headers)))
        for name, data in record.headers:
            key = name.encode()
            parts += (varint(len(key)), key)
            if data is None:
                parts.append(b"\x01")
            else:
                parts += (varint(len(data)), data)
        body = b"".join(parts)
        out += (varint(len(body)), body)
    return b"".join(out)


def _make_varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL: Final = [_make_varint(number) for number in range(4096)]


def varint(number: int) -> bytes:
    """Zig-zag, seven bits a byte; a long is written the same way."""
    if 0 <= number < 4096:
        return _SMALL[number]
    return _make_varint(number)


def _legacy(
    records: Sequence[Record],
    magic: int,
    codec: Codec,
    base: int,
    timestamp_type: TimestampType,
    log_append_time: int,
) -> bytes:
    if codec == Codec.ZSTD:
        raise NotRepresentable(f"format v{magic} has no zstd")
    if magic and timestamp_type == "NoTimestampType":
        raise NotRepresentable("a message of format v1 needs a timestamp type")
    relative = base if magic and codec else 0
    attributes = 0x08 if magic and timestamp_type == "LogAppendTime" else 0
    out: list[bytes] = []
    newest = NO_TIMESTAMP
    for record in records:
        if record.headers:
            raise NotRepresentable(f"format v{magic} has no headers")
        timestamp = log_append_time if timestamp_type == "LogAppendTime" else record.timestamp
        newest = max(newest, timestamp)
        message = _message(magic, attributes, timestamp, record.key, record.value)
        out += (_entry(record.offset - relative, len(message)), message)
    entries = b"".join(out)
    if not codec:
        return entries
    packed = compress(codec, entries, magic=magic)
    message = _message(magic, attributes | codec, newest, None, packed)
    return _entry(records[-1].offset, len(message)) + message


def _message(
    magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    parts = [bytes((magic, attributes))]
    if magic:
        parts.append(timestamp.to_bytes(8, "big", signed=True))
    for data in (key, value):
        if data is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts += (_i32(len(data)), data)
    covered = b"".join(parts)
    return zlib.crc32(covered).to_bytes(4, "big") + covered


def _refuse_disorder(records: Sequence[Record], base: int) -> None:
    previous = base - 1
    for record in records:
        if record.offset <= previous:
            raise NotRepresentable(f"offset {record.offset} after {previous}: they must increase")
        if record.timestamp < NO_TIMESTAMP:
            raise NotRepresentable(f"a timestamp of {record.timestamp} at offset {record.offset}")
        previous = record.offset


def _refuse_producer(
    magic: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    is_control: bool,
) -> None:
    if producer_id == NO_PRODUCER_ID:
        if is_transactional:
            raise NotRepresentable("a transactional batch needs a producer id")
        return
    if magic < 2:
        raise NotRepresentable(f"format v{magic} has no producer id")
    if producer_epoch < 0:
        raise NotRepresentable("a producer id needs a producer epoch")
    if base_sequence < 0 and not is_control:
        raise NotRepresentable("a producer id needs a sequence")
