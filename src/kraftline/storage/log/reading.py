"""What a read of a log gives: a range of a file, not bytes; and how ranges are found.

- Ranges begin with the batch that has the offset, end at any byte (clients drop half a batch),
  and never pass the bound: the high watermark, the last stable offset or the log's end.
- The first batch is given whole where one is asked for at least.
"""

from __future__ import annotations

import os
from bisect import bisect_left

import msgspec

from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.log.segment import Segment
from kraftline.storage.log.segments import RecentlyRead, Segments
from kraftline.storage.txn_index import AbortedTxn, aborted_between


class FileRange(msgspec.Struct, frozen=True, gc=False):
    """`length` bytes from `position` on of an open file, for `os.sendfile(out, range.file.fd, …)`.

    The file stays readable as long as the range is kept, deleted or not. `None` holds nothing.
    """

    file: OpenFile | None
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes themselves, where they are wanted in memory."""
        if self.file is None:
            return b""
        return os.pread(self.file.fd, self.length, self.position)


NOTHING = FileRange(None, 0, 0)


class Found(msgspec.Struct, frozen=True, gc=False):
    """A batch of `size` bytes, at a position in a segment; `slot` is the segment's number in the
    list `segments`, which may be another by now."""

    segments: Segments
    slot: int
    segment: Segment
    position: int
    size: int


def find(segments: Segments, offset: int, recent: RecentlyRead) -> Found | None:
    """The first batch that ends at or after an offset, which may be in a later segment: those
    before it may have been compacted away. None where no such batch is."""
    slot = segments.of(offset)
    if slot < 0:
        slot = 0
    for segment in segments.all[slot:]:
        place = segment.find(offset)
        if segment is not segments.active:
            recent.touch(segment)
        if place is not None:
            return Found(segments, slot, segment, *place)
        slot += 1
    return None


def upper_bound(found: Found, length: int, end_offset: int) -> int:
    """An offset that a range surely ends before or at, by the index."""
    index = found.segment.offsets
    end = found.position + length
    slot = bisect_left(index.positions, end)
    if slot == 0 and index.positions and index.positions[0] == end:
        slot = 1  # as in Kafka, whose search never looks at the first entry itself
    if slot < len(index.positions):
        return index.base_offset + index.relative_offsets[slot]
    following = found.segments.following(found.segment)
    return end_offset if following is None else following.base_offset


def aborted_from(segments: Segments, slot: int, start: int, end: int) -> list[AbortedTxn]:
    """The aborted transactions that touch offsets from start to end (exclusive); `slot` is the
    number of the segment that start is in."""
    collected: list[AbortedTxn] = []
    for segment in segments.all[max(slot, 0) :]:
        some, is_complete = aborted_between(segment.aborted(), start, end)
        collected += some
        if is_complete:
            break
    return collected
