"""`.timeindex`: which offset a time leads to. 12-byte entries, sparse, no checksum.

An entry is (timestamp int64, offset - base offset int32): no record up to that offset is younger
than the timestamp. Both rise. Preallocated and cut like the offset index. Unlike there, a first
entry with relative offset 0 is normal (a segment of one record, closed), and even one that is
all zeros is, where the timestamp is 0: it counts if the file holds nothing else.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from kraftline.errors import Corrupt
from kraftline.storage.files import Path, Source, load, write_aside
from kraftline.storage.names import base_offset_of
from kraftline.storage.offset_index import (
    MAX_SIZE,
    check_end,
    check_rising,
    end_of_entries,
    without_zeros,
)

ENTRY = 12
NO_TIMESTAMP = -1


class TimeEntry(msgspec.Struct, frozen=True, gc=False):
    timestamp: int
    offset: int


class TimeIndex(msgspec.Struct, frozen=True):
    """A parsed index in columns; `zero_tail` preallocated bytes follow the entries."""

    base_offset: int
    timestamps: array[int]
    relative_offsets: array[int]
    zero_tail: int = 0

    def __len__(self) -> int:
        return len(self.timestamps)

    def __iter__(self) -> Iterator[TimeEntry]:
        base = self.base_offset
        for timestamp, relative in zip(self.timestamps, self.relative_offsets, strict=True):
            yield TimeEntry(timestamp, base + relative)


def read_time_index(
    source: Source, base_offset: int | None = None, *, limit: int = MAX_SIZE
) -> TimeIndex:
    """Parse an index; its base offset is in its file name unless told."""
    data, file = load(source, limit)
    if base_offset is None:
        base_offset = (base_offset_of(file) if file else None) or 0
    if len(data) % ENTRY:
        raise Corrupt(
            f"{len(data)} bytes, which is not a multiple of {ENTRY}",
            file=file,
            position=len(data) - len(data) % ENTRY,
        )
    is_one = len(data) == ENTRY
    timestamps, relative = _columns(data if is_one else without_zeros(data, ENTRY))
    count = end_of_entries(relative)
    if count == 1 and not is_one and timestamps[0] == 0 and relative[0] == 0:
        count = 0
    check_end(count, len(relative), ENTRY, file)
    check_rising(timestamps, "timestamp", ENTRY, file)
    check_rising(relative, "relative offset", ENTRY, file, equal=True)
    return TimeIndex(base_offset, timestamps, relative, len(data) - count * ENTRY)


def _columns(data: bytes) -> tuple[array[int], array[int]]:
    # Three columns of 32 bits, of which two are the halves of the timestamps.
    words = array("i", data)
    halves = array("i", bytes(len(data) // ENTRY * 8))
    if sys.byteorder == "little":
        words.byteswap()
        halves[0::2], halves[1::2] = words[1::3], words[0::3]
    else:
        halves[0::2], halves[1::2] = words[0::3], words[1::3]
    return array("q", halves.tobytes()), words[2::3]


def lookup(index: TimeIndex, timestamp: int) -> TimeEntry:
    """The latest entry not younger than the timestamp; (-1, base offset) where there is none."""
    slot = bisect_right(index.timestamps, timestamp) - 1
    if slot < 0:
        return TimeEntry(NO_TIMESTAMP, index.base_offset)
    return TimeEntry(index.timestamps[slot], index.base_offset + index.relative_offsets[slot])


def format_time_index(
    base_offset: int, entries: Iterable[TimeEntry], *, zero_tail: int = 0
) -> bytes:
    """The file's bytes, followed by `zero_tail` preallocated ones."""
    out = bytearray()
    for entry in entries:
        out += entry.timestamp.to_bytes(8, "big", signed=True)
        out += (entry.offset - base_offset).to_bytes(4, "big", signed=True)
    return bytes(out) + bytes(zero_tail)


def encode_time_index(index: TimeIndex, start: int = 0) -> bytes:
    """The bytes of a parsed index, from its entry `start` on."""
    # All columns to the same length, though an appender may be adding an entry meanwhile.
    relative = index.relative_offsets[start:]
    halves = array("i", index.timestamps[start : start + len(relative)].tobytes())
    words = array("i", bytes(3 * relative.itemsize * len(relative)))
    words[2::3] = relative
    if sys.byteorder == "little":
        words[0::3], words[1::3] = halves[1::2], halves[0::2]
        words.byteswap()
    else:
        words[0::3], words[1::3] = halves[0::2], halves[1::2]
    return words.tobytes()


def write_time_index(path: Path, base_offset: int, entries: Iterable[TimeEntry]) -> None:
    write_aside(path, format_time_index(base_offset, entries))
