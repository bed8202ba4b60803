"""The files of the log while it is written: segments appended to, rolled, and dropped.

Only one thread at a time may call this; readers of the log get an immutable `LogView`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from kraftline.raft.recovery import Recovered, write_producer_snapshot
from kraftline.raft.settings import LogSettings
from kraftline.storage.files import sync_directory
from kraftline.storage.names import MAX_INT, FileKind, Working, format_segment_file
from kraftline.storage.segment_append import SegmentAppender

_KINDS = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TXN_INDEX,
    FileKind.PRODUCER_SNAPSHOT,
)


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """One batch, ready to be written."""

    data: bytes
    base_offset: int
    end_offset: int
    timestamp: int


class SegmentView(msgspec.Struct, frozen=True, gc=False):
    """A segment as readers may read it: so many bytes of it are durable."""

    base_offset: int
    path: str
    size: int


class LogView(msgspec.Struct, frozen=True):
    """What is durable: offsets from `start_offset` to `end_offset`, in these segments."""

    start_offset: int
    end_offset: int
    closed: tuple[SegmentView, ...]
    active: SegmentView

    @property
    def segments(self) -> tuple[SegmentView, ...]:
        return (*self.closed, self.active)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.closed) + self.active.size


class SegmentLog:
    """The writer of one metadata log."""

    def __init__(self, directory: str, recovered: Recovered, settings: LogSettings) -> None:
        self.directory = directory
        self.settings = settings
        self.start_offset = recovered.report.log_start_offset
        self.end_offset = recovered.report.end_offset
        *closed, last = recovered.segments
        self._closed = tuple(SegmentView(s.base_offset, s.path, s.size) for s in closed)
        self._active = SegmentAppender(
            directory,
            last.base_offset,
            size=last.size,
            first_timestamp=last.first_timestamp,
            indexes=last.indexes,
        )
        self._unsynced: list[SegmentAppender] = []

    def write(self, batches: Sequence[Encoded]) -> None:
        """Append batches in order. They are durable, and in the view, after `sync`."""
        ready: list[bytes] = []
        size = self._active.size
        for batch in batches:
            if self._must_roll(batch, size):
                self._active.append(ready)
                ready, size = [], 0
                self._roll(batch.base_offset)
            ready.append(batch.data)
            size += len(batch.data)
            if self._active.first_timestamp is None:
                self._active.first_timestamp = batch.timestamp
            self.end_offset = batch.end_offset
        self._active.append(ready)

    def sync(self) -> LogView:
        """Flush everything written; what is durable now."""
        while self._unsynced:
            self._unsynced[0].finish()
            del self._unsynced[0]
        self._active.sync()
        return self.view()

    def view(self) -> LogView:
        active = SegmentView(self._active.base_offset, self._active.path, self._active.size)
        return LogView(self.start_offset, self.end_offset, self._closed, active)

    def drop_before(self, offset: int) -> list[str]:
        """The log starts at the offset now: segments that end before it get the suffix
        `.deleted`. Returns their paths, to be removed once nobody reads them any more."""
        self.start_offset = max(self.start_offset, offset)
        renamed: list[str] = []
        segments = self.view().segments
        kept = 0
        while kept + 1 < len(segments) and segments[kept + 1].base_offset <= self.start_offset:
            for kind in _KINDS:
                path = os.path.join(
                    self.directory, format_segment_file(segments[kept].base_offset, kind)
                )
                if os.path.exists(path):
                    os.rename(path, path + Working.DELETED.value)
                    renamed.append(path + Working.DELETED.value)
            kept += 1
        self._closed = self._closed[kept:]
        if renamed:
            sync_directory(self.directory)
        return renamed

    def finish(self) -> None:
        """A clean stop: everything flushed, indexes ended, and the producer state noted."""
        self.sync()
        if self.end_offset > self.start_offset:
            write_producer_snapshot(self.directory, self.end_offset)
        self._active.finish()
        sync_directory(self.directory)

    def release(self) -> None:
        """Let go of the files as they are."""
        for segment in (*self._unsynced, self._active):
            segment.release()

    def _must_roll(self, batch: Encoded, size: int) -> bool:
        first = self._active.first_timestamp
        waited = 0 if first is None else batch.timestamp - first
        return (
            size > self.settings.segment_bytes - len(batch.data)
            or (size > 0 and waited > self.settings.segment_ms)
            or batch.end_offset - 1 - self._active.base_offset > MAX_INT
        )

    def _roll(self, base_offset: int) -> None:
        old = self._active
        self._active = SegmentAppender(self.directory, base_offset)
        self._unsynced.append(old)
        self._closed = (*self._closed, SegmentView(old.base_offset, old.path, old.size))
        write_producer_snapshot(self.directory, base_offset)
