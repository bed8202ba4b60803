"""A record, and the words and numbers that all batch formats share."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal, TypeAlias

import msgspec

Bytes: TypeAlias = bytes | bytearray | memoryview

TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime", "NoTimestampType"]

Header: TypeAlias = tuple[str, bytes | None]

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
MAX_SEQUENCE: Final = 0x7FFFFFFF


class Codec(IntEnum):
    """How the records of a batch are compressed; the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Record(msgspec.Struct, frozen=True):
    """One record as a reader sees it: absolute offset and timestamp, bytes as they were sent."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    sequence: int = NO_SEQUENCE
    timestamp_type: TimestampType = "CreateTime"


def advance_sequence(sequence: int, by: int) -> int:
    """Sequences run from 0 to 2**31 - 1 and start again at 0."""
    return (sequence + by) & MAX_SEQUENCE
