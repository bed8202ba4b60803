"""Committed batches, in order: what a listener gets, from memory or from the disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kraftline.errors import Corrupt
from kraftline.raft.segment_log import LogView, SegmentView
from kraftline.records.batch import Batch
from kraftline.records.checksums import sound_until
from kraftline.records.framing import batches
from kraftline.storage.batch_search import Frame
from kraftline.storage.segment import SegmentReader

_WINDOW = 1024 * 1024


class CommittedBatches:
    """Batches from `base_offset` up to `end_offset` (exclusive), `size` bytes; iterate as often
    as you like. Control batches are among them."""

    __slots__ = ("_chunks", "base_offset", "end_offset", "size")

    def __init__(
        self, chunks: Sequence[bytes | memoryview], base_offset: int, end_offset: int
    ) -> None:
        self._chunks = chunks
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.size = sum(map(len, chunks))

    def __iter__(self) -> Iterator[Batch]:
        for chunk in self._chunks:
            yield from batches(chunk)

    def __repr__(self) -> str:
        return f"CommittedBatches({self.base_offset} to {self.end_offset}, {self.size:,} bytes)"


class DiskCursor:
    """Reads the log from an offset on, a megabyte at a time. Not for two threads at once."""

    def __init__(self, offset: int) -> None:
        self.next_offset = offset
        self._segment: int | None = None
        self._position = 0
        self._reader: SegmentReader | None = None

    def read(self, view: LogView) -> CommittedBatches | None:
        """The next batches; None at the end of what is durable."""
        while self.next_offset < view.end_offset:
            segment, reader = self._open(view)
            if self._position >= segment.size:
                # A segment ends where the next begins.
                raise Corrupt(
                    f"the segment ends before offset {self.next_offset}", file=segment.path
                )
            for run in reader.runs(
                self._position, segment.size, keep=True, live=True, window=_WINDOW
            ):
                if (
                    run.position != self._position
                    or sound_until(run.buffer, run.start, run.end) != run.end
                ):
                    break
                chunk = memoryview(run.buffer)[run.start : run.end]
                found = list(batches(chunk))
                first = next(n for n, b in enumerate(found) if b.next_offset > self.next_offset)
                chunk = chunk[found[first].position :]
                self._position = run.position + run.end - run.start
                self.next_offset = found[-1].next_offset
                return CommittedBatches((chunk,), found[first].base_offset, self.next_offset)
            raise Corrupt(
                "a batch that was whole has changed",
                file=segment.path,
                position=self._position,
                offset=self.next_offset,
            )
        return None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._segment = None

    def _open(self, view: LogView) -> tuple[SegmentView, SegmentReader]:
        segment = segment_of(view, self.next_offset)
        if self._reader is None or self._segment != segment.base_offset:
            self.close()
            self._reader = SegmentReader(segment.path)
            self._segment = segment.base_offset
            self._position = 0
            if self.next_offset > segment.base_offset:
                self._position = self._reader.position_of_offset(self.next_offset) or 0
        return segment, self._reader


def segment_of(view: LogView, offset: int) -> SegmentView:
    segments = view.segments
    slot = bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1
    return segments[max(slot, 0)]


def batch_at(view: LogView, offset: int) -> Frame | None:
    """The durable batch that has the offset, seen from outside."""
    if not view.segments[0].base_offset <= offset < view.end_offset:
        return None
    segment = segment_of(view, offset)
    with SegmentReader(segment.path) as reader:
        position = reader.position_of_offset(offset)
        return None if position is None else next(reader.frames(position))
