"""The segment that a log appends to: its `.log` and both indexes, growing together.

Index entries are written as batches come, by Kafka's rule, and never preallocated: a process that
dies leaves files that are whole up to some entry. Only `.log` is flushed at every `sync`, since
whoever opens a segment after a crash builds its indexes again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kraftline.storage.batch_search import frame_at
from kraftline.storage.files import Path, sync_directory, write_if_other
from kraftline.storage.index_builder import INDEX_INTERVAL, IndexBuilder
from kraftline.storage.names import FileKind, format_segment_file
from kraftline.storage.offset_index import encode_offset_index
from kraftline.storage.time_index import encode_time_index

# How many buffers one system call takes; Linux has 1024.
_AT_ONCE = 512
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class SegmentAppender:
    """One open segment. `first_timestamp` is the first batch's, None while there is none."""

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        size: int = 0,
        first_timestamp: int | None = None,
        indexes: IndexBuilder | None = None,
    ) -> None:
        """A new segment, or with `size` one that has so many good bytes, `indexes` from those."""
        self.directory = os.fspath(directory)
        self.base_offset = base_offset
        self.size = size
        self.first_timestamp = first_timestamp
        self._indexes = indexes or IndexBuilder(base_offset, INDEX_INTERVAL)
        self._indexes.reopen(size)
        self.path = self._name(FileKind.LOG)
        self._log = os.open(self.path, _APPEND, 0o644)
        write_if_other(self._name(FileKind.OFFSET_INDEX), self._indexes.offset_index())
        write_if_other(self._name(FileKind.TIME_INDEX), self._indexes.time_index())
        self._offset_index = os.open(self._name(FileKind.OFFSET_INDEX), _APPEND, 0o644)
        self._time_index = os.open(self._name(FileKind.TIME_INDEX), _APPEND, 0o644)
        self._note_written()
        # A name that is not flushed may be gone after a crash, with all that was acknowledged.
        sync_directory(self.directory)

    def append(self, batches: Sequence[bytes]) -> None:
        """Write whole batches, whose offsets are final, at the end of the file."""
        for start in range(0, len(batches), _AT_ONCE):
            self._write(batches[start : start + _AT_ONCE])
        for batch in batches:
            frame = frame_at(batch, 0, self.size)
            if self.first_timestamp is None:
                self.first_timestamp = frame.max_timestamp
            self._indexes.add(self.size, frame.last_offset, frame.max_timestamp)
            self.size += frame.size
        self._write_entries()

    def sync(self) -> None:
        """Make everything appended durable."""
        os.fsync(self._log)

    def finish(self) -> None:
        """Close the segment for good, or for a stop: the latest time noted, all flushed."""
        self._indexes.close()
        self._write_entries()
        for fd in (self._log, self._offset_index, self._time_index):
            os.fsync(fd)
        self.release()

    def release(self) -> None:
        """Close the files as they are; all that can be done where a disk has failed."""
        for fd in (self._log, self._offset_index, self._time_index):
            if fd >= 0:
                os.close(fd)
        self._log = self._offset_index = self._time_index = -1

    def _write(self, batches: Sequence[bytes]) -> None:
        rest: list[bytes | memoryview] = list(batches)
        while rest:
            written = os.writev(self._log, rest)
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = memoryview(rest[0])[written:]

    def _write_entries(self) -> None:
        offsets = encode_offset_index(self._indexes.offsets, self._offsets_written)
        times = encode_time_index(self._indexes.times, self._times_written)
        if offsets:
            os.write(self._offset_index, offsets)
        if times:
            os.write(self._time_index, times)
        self._note_written()

    def _note_written(self) -> None:
        self._offsets_written = len(self._indexes.offsets)
        self._times_written = len(self._indexes.times)

    def _name(self, kind: FileKind) -> str:
        return os.path.join(self.directory, format_segment_file(self.base_offset, kind))
