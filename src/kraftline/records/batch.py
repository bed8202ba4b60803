"""A batch is a view: where it starts in a buffer, and header fields read when asked for.

`Batch` is what every format offers; `DefaultBatch` is format v2, `legacy.LegacyBatch` is v0
and v1. Records are decoded, and checksums compared, only when someone asks.
"""

from __future__ import annotations

import struct
import threading
from array import array
from itertools import starmap
from typing import Final, Protocol

import google_crc32c

from kraftline.errors import BadData, Corrupt, Unsupported
from kraftline.records.compression import DEFAULT_LIMIT, Scratch, decompress
from kraftline.records.kernel import active as kernel
from kraftline.records.record import NO_SEQUENCE, Codec, Record, TimestampType, advance_sequence

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12  # base offset and length, common to all formats

_i8 = struct.Struct(">b").unpack_from
_i16 = struct.Struct(">h").unpack_from
_i32 = struct.Struct(">i").unpack_from
_u32 = struct.Struct(">I").unpack_from
_i64 = struct.Struct(">q").unpack_from


class Batch(Protocol):
    """One batch of any format. v0 and v1 answer "none" (-1, None, False) for what they lack."""

    @property
    def buffer(self) -> memoryview:
        """The memory that holds the batch."""

    @property
    def start(self) -> int:
        """Where the batch starts in `buffer`."""

    @property
    def position(self) -> int:
        """Where the batch starts in its file."""

    @property
    def size_in_bytes(self) -> int:
        """All of it, with the twelve bytes of offset and length."""

    @property
    def data(self) -> memoryview:
        """The bytes of the batch."""

    @property
    def magic(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def codec(self) -> Codec: ...
    @property
    def timestamp_type(self) -> TimestampType: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def delete_horizon_ms(self) -> int | None: ...
    @property
    def partition_leader_epoch(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def count(self) -> int | None:
        """How many records the header announces; None in v0 and v1, which do not say."""

    def check(self) -> None:
        """Raise Corrupt unless the checksum is right."""

    def records(self, *, check_crc: bool = True, limit: int = DEFAULT_LIMIT) -> list[Record]:
        """Every record, decoded and checked; `limit` is in bytes after decompression."""


class DefaultBatch:
    """A batch of format v2."""

    __slots__ = ("buffer", "position", "size", "start")

    def __init__(self, buffer: memoryview, start: int, size: int, position: int) -> None:
        self.buffer = buffer
        self.start = start
        self.size = size
        self.position = position

    def __repr__(self) -> str:
        return f"Batch(offsets {self.base_offset}..{self.last_offset}, position {self.position})"

    @property
    def size_in_bytes(self) -> int:
        return self.size

    @property
    def data(self) -> memoryview:
        return self.buffer[self.start : self.start + self.size]

    @property
    def magic(self) -> int:
        return 2

    @property
    def base_offset(self) -> int:
        return int(_i64(self.buffer, self.start)[0])

    @property
    def last_offset_delta(self) -> int:
        return int(_i32(self.buffer, self.start + 23)[0])

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def crc(self) -> int:
        return int(_u32(self.buffer, self.start + 17)[0])

    @property
    def attributes(self) -> int:
        return int(_i16(self.buffer, self.start + 21)[0])

    @property
    def codec(self) -> Codec:
        return codec_of(self.buffer[self.start + 22] & 7, self.position, self.base_offset)

    @property
    def timestamp_type(self) -> TimestampType:
        return "LogAppendTime" if self.buffer[self.start + 22] & 0x08 else "CreateTime"

    @property
    def base_timestamp(self) -> int:
        return int(_i64(self.buffer, self.start + 27)[0])

    @property
    def max_timestamp(self) -> int:
        return int(_i64(self.buffer, self.start + 35)[0])

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers here may go: kept in the place of the base timestamp."""
        return self.base_timestamp if self.buffer[self.start + 22] & 0x40 else None

    @property
    def partition_leader_epoch(self) -> int:
        return int(_i32(self.buffer, self.start + 12)[0])

    @property
    def producer_id(self) -> int:
        return int(_i64(self.buffer, self.start + 43)[0])

    @property
    def producer_epoch(self) -> int:
        return int(_i16(self.buffer, self.start + 51)[0])

    @property
    def base_sequence(self) -> int:
        return int(_i32(self.buffer, self.start + 53)[0])

    @property
    def last_sequence(self) -> int:
        base = self.base_sequence
        return base if base == NO_SEQUENCE else advance_sequence(base, self.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        return bool(self.buffer[self.start + 22] & 0x10)

    @property
    def is_control(self) -> bool:
        return bool(self.buffer[self.start + 22] & 0x20)

    @property
    def count(self) -> int:
        return int(_i32(self.buffer, self.start + 57)[0])

    def check(self) -> None:
        crc = google_crc32c.value(bytes(self.buffer[self.start + 21 : self.start + self.size]))
        if crc != self.crc:
            raise Corrupt(
                f"the checksum of the batch is {self.crc:#010x}, its bytes give {crc:#010x}",
                position=self.position,
                offset=self.base_offset,
            )

    def records(self, *, check_crc: bool = True, limit: int = DEFAULT_LIMIT) -> list[Record]:
        if check_crc:
            self.check()
        table = array("q", bytes(8 * kernel.STRIDE))
        totals = array("q", bytes(8 * kernel.TOTALS))
        body = self.buffer
        start = self.start
        kernel.scan(body, start, start + self.size, self.position - start, table)
        if table[kernel.ATTRIBUTES] & 7 and self.count:
            scratch = take_scratch()
            packed = body[start + HEADER_SIZE : start + self.size]
            try:
                body = decompress(self.codec, packed, limit=limit, scratch=scratch)
            except BadData as problem:
                raise problem.at(position=self.position, offset=self.base_offset) from None
            finally:
                scratch.shrink()  # `body` keeps what it needs
            table[kernel.BODY], table[kernel.BODY_END] = 0, len(body)
        kernel.measure(body, table, 0, 1, totals)
        found = kernel.tuples(body, table, 0, 1)
        if self.timestamp_type == "LogAppendTime":
            found = [(*fields, "LogAppendTime") for fields in found]
        return list(starmap(Record, found))


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.scratch = Scratch()


_per_thread = _PerThread()


def take_scratch() -> Scratch:
    """This thread's scratch memory; good until the next batch is decompressed on this thread."""
    return _per_thread.scratch


def codec_of(number: int, position: int, offset: int) -> Codec:
    if number > Codec.ZSTD:
        raise Unsupported(
            f"compression codec {number} is not known", position=position, offset=offset
        )
    return Codec(number)
