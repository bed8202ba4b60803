"""Write a segment as Kafka would have: the `.log`, and the two indexes that go with it.

An index gets an entry before a batch is added when more than `index.interval.bytes` have been
written since the last one. That is Kafka's rule when it appends (4.x: batch by batch) and when it
recovers a segment, so indexes built here are Kafka's byte for byte, unless a broker was stopped
in between (it forgets its count and notes the latest time at every close) or, before 4.0, a
follower appended several batches at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from kraftline.errors import Corrupt, NotRepresentable
from kraftline.storage.batch_search import HEADER, OVERHEAD, Frame, frame_at, implausible
from kraftline.storage.files import Path, sync_directory, write_aside
from kraftline.storage.names import MAX_INT, FileKind, base_offset_of
from kraftline.storage.offset_index import OffsetEntry, format_offset_index
from kraftline.storage.segment import SegmentReader
from kraftline.storage.time_index import NO_TIMESTAMP, TimeEntry, format_time_index

INDEX_INTERVAL = 4096


class IndexBuilder:
    """Both indexes of a segment, built from its batches in order."""

    def __init__(self, base_offset: int, interval: int = INDEX_INTERVAL) -> None:
        self.base_offset = base_offset
        self.interval = interval
        self.offset_entries: list[OffsetEntry] = []
        self.time_entries: list[TimeEntry] = []
        self._indexed = 0
        self._latest = TimeEntry(NO_TIMESTAMP, base_offset)

    def add(self, frame: Frame) -> None:
        if not 0 <= frame.last_offset - self.base_offset <= MAX_INT:
            raise NotRepresentable(
                f"offset {frame.last_offset} is too far from the segment's base offset "
                f"{self.base_offset}: start a new segment"
            )
        if frame.max_timestamp > self._latest.timestamp:
            self._latest = TimeEntry(frame.max_timestamp, frame.last_offset)
        if frame.position - self._indexed > self.interval:
            self.offset_entries.append(OffsetEntry(frame.last_offset, frame.position))
            self._note_time()
            self._indexed = frame.position

    def reopen(self, position: int) -> None:
        """What a broker's stop and start with `position` bytes written does to the indexes."""
        self._note_time()
        self._indexed = position

    def offset_index(self) -> bytes:
        return format_offset_index(self.base_offset, self.offset_entries)

    def time_index(self) -> bytes:
        return format_time_index(self.base_offset, self.time_entries)

    def close(self) -> None:
        """A closed segment ends its time index with the latest time in it."""
        self._note_time()

    def _note_time(self) -> None:
        last = self.time_entries[-1].timestamp if self.time_entries else NO_TIMESTAMP
        if self._latest.timestamp > last:
            self.time_entries.append(self._latest)


def rebuild_indexes(
    log: Path | SegmentReader,
    *,
    base_offset: int | None = None,
    interval: int = INDEX_INTERVAL,
    closed: bool = True,
) -> tuple[bytes, bytes]:
    """The `.index` and `.timeindex` that belong to a `.log`; `closed` as after a roll or stop."""
    if not isinstance(log, SegmentReader):
        with SegmentReader(log) as reader:
            return rebuild_indexes(
                reader, base_offset=base_offset, interval=interval, closed=closed
            )
    builder = IndexBuilder(log.base_offset if base_offset is None else base_offset, interval)
    for frame in log.frames():
        builder.add(frame)
    if closed:
        builder.close()
    return builder.offset_index(), builder.time_index()


def write_segment(
    path: Path,
    batches: Iterable[bytes | bytearray | memoryview],
    *,
    interval: int = INDEX_INTERVAL,
) -> int:
    """Write `.log`, `.index` and `.timeindex`; returns the next offset.

    Each item is one or more whole batches with their final offsets. The segment must not be
    there yet.
    """
    target = os.fspath(path)
    base_offset = base_offset_of(target)
    stem, suffix = os.path.splitext(target)
    if base_offset is None or suffix != FileKind.LOG.value:
        raise NotRepresentable(f"{target}: a segment's name is 20 digits and .log")
    builder = IndexBuilder(base_offset, interval)
    position = next_offset = 0
    with open(target, "xb") as file:
        for item in batches:
            for frame in _frames(memoryview(item), position):
                builder.add(frame)
                next_offset = frame.last_offset + 1
            position += file.write(item)
        file.flush()
        os.fsync(file.fileno())
    builder.close()
    write_aside(stem + FileKind.OFFSET_INDEX.value, builder.offset_index())
    write_aside(stem + FileKind.TIME_INDEX.value, builder.time_index())
    sync_directory(os.path.dirname(target) or ".")
    return max(next_offset, base_offset)


def _frames(data: memoryview, position: int) -> Iterable[Frame]:
    at = 0
    while at < len(data):
        if len(data) - at < HEADER.size:
            raise Corrupt("bytes that are no whole batch", position=position + at)
        base_offset, length, _, magic = HEADER.unpack_from(data, at)
        reason = implausible(base_offset, length, magic)
        if reason is None and at + OVERHEAD + length > len(data):
            reason = "a batch that is not whole"
        if reason is not None:
            raise Corrupt(reason, position=position + at)
        frame = frame_at(data, at, position + at)
        yield frame
        at += frame.size
