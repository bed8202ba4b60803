"""Message sets of formats v0 and v1: one entry is one batch, perhaps a compressed wrapper.

A wrapper's value is a compressed message set. Its own offset is that of the last message inside;
inner offsets are absolute in v0 and relative in v1 (with gaps once a log has been compacted).
Wrappers do not nest.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kraftline.errors import BadData, Corrupt
from kraftline.records.batch import LOG_OVERHEAD, codec_of, take_scratch
from kraftline.records.compression import DEFAULT_LIMIT, decompress
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

OVERHEAD: Final = (14, 22)  # bytes of a message without key and value, by format
_MAX_SPAN: Final = 0x7FFFFFFF
_MAX_OFFSET: Final = (1 << 63) - (1 << 31)

_i32 = struct.Struct(">i").unpack_from
_i64 = struct.Struct(">q").unpack_from
_entry = struct.Struct(">qi").unpack_from


class LegacyBatch:
    """An entry of a v0 or v1 message set."""

    __slots__ = ("buffer", "position", "size", "start")

    def __init__(self, buffer: memoryview, start: int, size: int, position: int) -> None:
        self.buffer = buffer
        self.start = start
        self.size = size
        self.position = position

    def __repr__(self) -> str:
        return f"LegacyBatch(v{self.magic}, offset {self.last_offset}, position {self.position})"

    @property
    def size_in_bytes(self) -> int:
        return self.size

    @property
    def data(self) -> memoryview:
        return self.buffer[self.start : self.start + self.size]

    @property
    def magic(self) -> int:
        return self.buffer[self.start + 16]

    @property
    def base_offset(self) -> int:
        """The first offset inside; a wrapper has to be decompressed to know."""
        if self.attributes & 7:
            return self.records(check_crc=False)[0].offset
        return self.last_offset

    @property
    def last_offset(self) -> int:
        return int(_i64(self.buffer, self.start)[0])

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def crc(self) -> int:
        return int.from_bytes(self.buffer[self.start + 12 : self.start + 16], "big")

    @property
    def attributes(self) -> int:
        return self.buffer[self.start + 17]

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes & 7, self.position, self.last_offset)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.attributes & 0x08 else "CreateTime"

    @property
    def base_timestamp(self) -> int:
        return self.max_timestamp

    @property
    def max_timestamp(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        return int(_i64(self.buffer, self.start + 18)[0])

    @property
    def delete_horizon_ms(self) -> None:
        return None

    @property
    def partition_leader_epoch(self) -> int:
        return NO_LEADER_EPOCH

    @property
    def producer_id(self) -> int:
        return NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> int:
        return NO_PRODUCER_EPOCH

    @property
    def base_sequence(self) -> int:
        return NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return NO_SEQUENCE

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    @property
    def count(self) -> int | None:
        return None

    def check(self) -> None:
        _check_crc(self.buffer, self.start, self.start + self.size, self.position)

    def records(self, *, check_crc: bool = True, limit: int = DEFAULT_LIMIT) -> list[Record]:
        end = self.start + self.size
        if check_crc:
            self.check()
        try:
            if not self.attributes & 7:
                return [_read(self.buffer, self.start, end, self.last_offset, self)]
            return _unwrap(self, check_crc, limit)
        except BadData as problem:
            raise problem.at(position=self.position, offset=self.last_offset) from None


def _check_crc(buffer: memoryview, start: int, end: int, position: int | None) -> None:
    stored = int.from_bytes(buffer[start + 12 : start + 16], "big")
    crc = zlib.crc32(buffer[start + 16 : end])
    if crc != stored:
        raise Corrupt(
            f"the checksum of the message is {stored:#010x}, its bytes give {crc:#010x}",
            position=position,
            offset=int(_i64(buffer, start)[0]),
        )


def _unwrap(wrapper: LegacyBatch, check_crc: bool, limit: int) -> list[Record]:
    if wrapper.codec == Codec.ZSTD:
        raise Corrupt("a v0 or v1 message set cannot be compressed with zstd")
    start, end = _value(wrapper.buffer, wrapper.start, wrapper.start + wrapper.size)[1]
    if end < 0:
        raise Corrupt("a compressed message set with a null value")
    scratch = take_scratch()
    packed = wrapper.buffer[start:end]
    try:
        inner = decompress(wrapper.codec, packed, limit=limit, magic=wrapper.magic, scratch=scratch)
    finally:
        scratch.shrink()  # `inner` keeps what it needs
    found = []
    for at, stop in _entries(inner):
        if inner[at + 17] & 7:
            raise Corrupt("a compressed message inside a compressed message set")
        if check_crc:
            _check_crc(inner, at, stop, None)
        found.append(_read(inner, at, stop, int(_i64(inner, at)[0]), wrapper))
    if not found:
        raise Corrupt("a compressed message set with no messages inside")
    if any(b.offset <= a.offset for a, b in pairwise(found)):
        raise Corrupt("a compressed message set whose offsets do not increase")
    if found[-1].offset - found[0].offset > _MAX_SPAN:
        raise Corrupt("a compressed message set whose offsets are too far apart")
    if wrapper.magic == 0:
        return found
    last, inner_last = wrapper.last_offset, found[-1].offset
    # Some librdkafka producers sent wrappers with offset 0: their inner offsets stand as they are.
    base = 0 if last == 0 else last - inner_last
    if base < 0:
        raise Corrupt(f"a wrapper with offset {last}, below the {inner_last} of its last message")
    return [_moved(record, base) for record in found]


def _moved(record: Record, by: int) -> Record:
    return Record(
        record.offset + by,
        record.timestamp,
        record.key,
        record.value,
        timestamp_type=record.timestamp_type,
    )


def _entries(inner: memoryview) -> Iterator[tuple[int, int]]:
    """Where the entries of a decompressed message set start and stop."""
    at = 0
    while at < len(inner):
        if len(inner) - at < LOG_OVERHEAD + 6:
            raise Corrupt("a compressed message set ends inside a message")
        size = int(_entry(inner, at)[1])
        magic = inner[at + 16]
        if magic > 1:
            raise Corrupt(f"a message of format {magic} inside a compressed message set")
        if size < OVERHEAD[magic]:
            raise Corrupt(f"a message of {size} bytes inside a compressed message set")
        if size > len(inner) - at - LOG_OVERHEAD:
            raise Corrupt("a compressed message set ends inside a message")
        yield at, at + LOG_OVERHEAD + size
        at += LOG_OVERHEAD + size


def _value(buffer: memoryview, start: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where key and value start and end; an end of -1 is a null."""
    at = start + (26 if buffer[start + 16] else 18)
    places = []
    for what in ("key", "value"):
        if end - at < 4:
            raise Corrupt(f"a message is cut in its {what}")
        size = int(_i32(buffer, at)[0])
        at += 4
        if size > end - at:
            raise Corrupt(f"a message is cut in its {what}")
        places.append((at, at + size if size >= 0 else -1))
        at += max(size, 0)
    if at != end:
        raise Corrupt(f"{end - at} bytes are left over behind a message")
    return places[0], places[1]


def _read(buffer: memoryview, start: int, end: int, offset: int, outer: LegacyBatch) -> Record:
    """The message there. Inside a wrapper of v1 the wrapper's timestamp type counts."""
    if not 0 <= offset <= _MAX_OFFSET:
        raise Corrupt(f"a message with offset {offset}")
    (key, key_end), (value, value_end) = _value(buffer, start, end)
    timestamp, kind = NO_TIMESTAMP, outer.timestamp_type
    if buffer[start + 16] == 0:
        kind = "NoTimestampType"
    elif kind == "LogAppendTime":
        timestamp = outer.max_timestamp
    else:
        timestamp = int(_i64(buffer, start + 18)[0])
    return Record(
        offset,
        timestamp,
        None if key_end < 0 else bytes(buffer[key:key_end]),
        None if value_end < 0 else bytes(buffer[value:value_end]),
        timestamp_type=kind,
    )
