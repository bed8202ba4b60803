"""Where an event stands in the log, when it took effect, and with which others."""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from msgspec import Struct

# Rows that were open come before whatever is new at their offset.
BEFORE_ALL: Final = -1
# The file's part of a unit; the rest is the position of a batch in it.
UNIT_BITS: Final = 32
UNIT_MASK: Final = 0x7FFF_FFFF


class Moment(NamedTuple):
    """Times are microseconds, None where nobody knows. A `unit` is the same for all that took
    effect together; it is None for what a snapshot says, and for rows that were open."""

    offset: int
    nth: int  # at that offset: 0, or its place in a snapshot
    at_offset: int
    at_time: int | None
    unit: int | None
    epoch: int | None
    opened: bool = False


class Leg(Struct, frozen=True):
    """A contiguous stretch of a cluster's log, as a build sees it. `next_*` is the snapshot that
    the next one begins with."""

    leg: int
    next_base_offset: int | None
    next_base_time: int | None
    end_offset: int
    committed_to: int | None
    continued: bool

    def is_committed(self, offset: int) -> bool:
        return self.committed_to is not None and offset < self.committed_to


def unit_of(file: str, position: int) -> int:
    """The unit of a batch. Spark's crc32 gives the same in `exchange.py`."""
    return ((zlib.crc32(file.encode()) & UNIT_MASK) << UNIT_BITS) ^ position


def unit_of_transaction(end: int) -> int:
    """The unit of all that a transaction holds, by the offset of its End: never that of a batch."""
    return -1 - end
