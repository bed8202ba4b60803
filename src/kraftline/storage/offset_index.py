"""`.index`: where in a segment an offset is. 8-byte entries, sparse, no checksum.

An entry is (offset - base offset, file position), both int32: the batch at that position ends
with that offset. Kafka preallocates the active file and cuts it on roll and clean close, so a
file found after a crash, or under a live broker, ends in zeros. Kafka itself takes every slot of
an existing file for an entry (and rebuilds after a crash); its dump tool stops at the first slot
after slot 0 that has relative offset 0. No entry of Kafka's is all zeros: the first is written
only once more than `index.interval.bytes` are in the segment.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import le, lt

import msgspec

from kraftline.errors import Corrupt
from kraftline.storage.files import Path, Source, load, write_aside
from kraftline.storage.names import base_offset_of

ENTRY = 8
# Kafka's default is 10 MiB; this is a segment of 1 GiB with an entry every 64 bytes.
MAX_SIZE = 128 * 1024 * 1024
_BLOCK = 64 * 1024


class OffsetEntry(msgspec.Struct, frozen=True, gc=False):
    offset: int
    position: int


class OffsetIndex(msgspec.Struct, frozen=True):
    """A parsed index: columns, so that a whole file is read in a few milliseconds.

    `zero_tail` is how many preallocated bytes follow the entries.
    """

    base_offset: int
    relative_offsets: array[int]
    positions: array[int]
    zero_tail: int = 0

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[OffsetEntry]:
        base = self.base_offset
        for relative, position in zip(self.relative_offsets, self.positions, strict=True):
            yield OffsetEntry(base + relative, position)


def read_offset_index(
    source: Source, base_offset: int | None = None, *, limit: int = MAX_SIZE
) -> OffsetIndex:
    """Parse an index; its base offset is in its file name unless told.

    Corrupt where sizes, order or the zero tail are not what Kafka writes.
    """
    data, file = load(source, limit)
    if base_offset is None:
        base_offset = (base_offset_of(file) if file else None) or 0
    if len(data) % ENTRY:
        raise Corrupt(
            f"{len(data)} bytes, which is not a multiple of {ENTRY}",
            file=file,
            position=len(data) - len(data) % ENTRY,
        )
    both = array("i", without_zeros(data, ENTRY))
    if sys.byteorder == "little":
        both.byteswap()
    relative, positions = both[0::2], both[1::2]
    count = end_of_entries(relative)
    if count == 1 and relative[0] == 0 and positions[0] == 0:
        count = 0
    check_end(count, len(relative), ENTRY, file)
    check_rising(relative, "relative offset", ENTRY, file)
    check_rising(positions, "position", ENTRY, file)
    return OffsetIndex(base_offset, relative, positions, len(data) - count * ENTRY)


def without_zeros(data: bytes, entry: int) -> bytes:
    """Without the preallocated end: up to the last entry in which there is something."""
    end = len(data)
    while end and data[max(0, end - _BLOCK) : end] == bytes(min(end, _BLOCK)):
        end = max(0, end - _BLOCK)
    last = max(0, end - _BLOCK)
    kept = last + len(data[last:end].rstrip(b"\0"))
    return data[: -(-kept // entry) * entry]


def check_end(count: int, slots: int, entry: int, file: str | None) -> None:
    """Corrupt where there is more than the entries."""
    if count != slots:
        raise Corrupt(
            "entries follow the end of the index",
            file=file,
            position=count * entry,
            hint="Kafka rebuilds an index that it finds in this state",
        )


def end_of_entries(relative_offsets: array[int]) -> int:
    """How many slots are entries: up to the first zero after slot 0."""
    try:
        return relative_offsets.index(0, 1)
    except ValueError:
        return len(relative_offsets)


def check_rising(
    column: array[int], what: str, entry: int, file: str | None, *, equal: bool = False
) -> None:
    """Corrupt, with the position of the culprit, unless values rise from 0 or more."""
    if not column:
        return
    if column[0] < 0:
        raise Corrupt(f"the first {what} is negative ({column[0]})", file=file, position=0)
    following = column[1:]
    if all(map(le if equal else lt, column, following)):
        return
    for n, (before, after) in enumerate(zip(column, following, strict=False), 1):
        if after < before or (after == before and not equal):
            raise Corrupt(
                f"{what} {after} follows {before}: entries must rise", file=file, position=n * entry
            )


def check_within(index: OffsetIndex, segment_size: int, file: str | None = None) -> None:
    """Corrupt if an entry points past the segment's bytes."""
    if index.positions and index.positions[-1] >= segment_size:
        raise Corrupt(
            f"the last entry points to position {index.positions[-1]}, "
            f"but the segment has {segment_size} bytes",
            file=file,
            position=(len(index) - 1) * ENTRY,
            hint="delete the index: Kafka builds a new one when it starts",
        )


def lookup(index: OffsetIndex, offset: int) -> OffsetEntry:
    """The largest entry at or below the offset; (base offset, 0) where there is none."""
    slot = bisect_right(index.relative_offsets, offset - index.base_offset) - 1
    if slot < 0:
        return OffsetEntry(index.base_offset, 0)
    return OffsetEntry(index.base_offset + index.relative_offsets[slot], index.positions[slot])


def format_offset_index(
    base_offset: int, entries: Iterable[OffsetEntry], *, zero_tail: int = 0
) -> bytes:
    """The file's bytes, followed by `zero_tail` preallocated ones."""
    both = array("i")
    for entry in entries:
        both.append(entry.offset - base_offset)
        both.append(entry.position)
    if sys.byteorder == "little":
        both.byteswap()
    return both.tobytes() + bytes(zero_tail)


def encode_offset_index(index: OffsetIndex, start: int = 0) -> bytes:
    """The bytes of a parsed index, from its entry `start` on."""
    # Both columns to the same length, though an appender may be adding an entry meanwhile.
    positions = index.positions[start:]
    both = array("i", bytes(2 * positions.itemsize * len(positions)))
    both[0::2] = index.relative_offsets[start : start + len(positions)]
    both[1::2] = positions
    if sys.byteorder == "little":
        both.byteswap()
    return both.tobytes()


def write_offset_index(path: Path, base_offset: int, entries: Iterable[OffsetEntry]) -> None:
    write_aside(path, format_offset_index(base_offset, entries))
