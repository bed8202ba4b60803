"""One segment of a partition's log: its bytes, and the way to an offset in them.

While a segment is appended to, both its indexes are in memory and its index files are behind;
they are brought up to date with a flush or close. That is no loss: whoever opens a log after a
crash builds the indexes of what was not flushed again. A closed segment opens its files when
somebody reads it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import struct
import threading
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from kraftline.errors import BadData, Corrupt, NotKafka
from kraftline.records.kernel import active as kernel
from kraftline.storage import offset_index, time_index
from kraftline.storage.batch_search import HEADER, Frame, frame_at, implausible
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.names import MAX_INT, FileKind, Working, format_segment_file
from kraftline.storage.offset_index import OffsetIndex
from kraftline.storage.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from kraftline.storage.txn_index import AbortedTxn, format_txn_index, read_txn_index

SEGMENT_KINDS: Final = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TXN_INDEX,
)
# What a look for an offset reads at a time: an index leads to within so many bytes mostly.
_SIGHT: Final = 4096 + 512
_WINDOW: Final = 64 * 1024
_HEADER_BYTES: Final = 61
_LEAST_BYTES: Final = 26  # of a message of the oldest format
_TIME: Final = struct.Struct(">qi")
_seek = kernel.seek
# Between those who make room and those who must not lose what is open.
_pinning: Final = threading.Lock()


def _framing(data: bytes, at: int) -> tuple[int, int, int]:
    base_offset, length, _, magic = HEADER.unpack_from(data, at)
    return base_offset, length, magic


class Segment:
    """`size` bytes from `base_offset` on. The one appender alone changes it.

    `indexes` are there while it is appended to. `first_timestamp` is that of the first batch, by
    which a segment's age is told; None while that is not known, or there is none.
    """

    __slots__ = (
        "_aborted",
        "_file",
        "_index",
        "_latest",
        "_offsets_written",
        "_pinned",
        "_times_written",
        "base_offset",
        "created",
        "directory",
        "first_timestamp",
        "indexes",
        "is_replaced",
        "jitter",
        "size",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        *,
        size: int = 0,
        created: int = 0,
        indexes: IndexBuilder | None = None,
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.created = created
        self.indexes = indexes
        self.first_timestamp: int | None = None
        self.jitter = 0
        # Another has its place: only those who read it now know it, and nobody may keep it.
        self.is_replaced = False
        self._file: OpenFile | None = None
        self._index: OffsetIndex | None = None
        self._latest: TimeEntry | None = None
        self._aborted: list[AbortedTxn] | None = None
        self._pinned = False
        # How many entries the index files have; -1: nothing is known of the files.
        self._offsets_written = -1
        self._times_written = -1

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {self.size:,} bytes)"

    def path(self, kind: FileKind = FileKind.LOG, working: Working = Working.NONE) -> str:
        return os.path.join(self.directory, format_segment_file(self.base_offset, kind, working))

    @property
    def file(self) -> OpenFile:
        """The open `.log`; whoever holds it can read on, whatever becomes of the segment."""
        file = self._file
        if file is None:
            opened = None
            with contextlib.suppress(FileNotFoundError):
                opened = OpenFile(self.path(), os.O_RDWR if self.indexes else os.O_RDONLY)
            with _pinning:
                # What was pinned meanwhile counts: by now the name may be another segment's.
                file = self._file = self._file or opened
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path())
        return file

    def let_go(self) -> None:
        """Forget what reading has opened and loaded. Of a closed segment."""
        with _pinning:
            if not self._pinned:
                self._file = self._index = None

    def pin(self) -> None:
        """Open and load what readers need, and keep it: other files are about to get these names.
        Of a closed segment."""
        with _pinning:
            self._pinned = True
        self._file = self.file
        self._index = self.offsets
        self._latest = self.latest
        self.aborted()

    def unpin(self) -> None:
        """The files have their names."""
        with _pinning:
            self._pinned = False

    def adopt(self, file: OpenFile, indexes: IndexBuilder, aborted: list[AbortedTxn]) -> None:
        """Take over what was written under other names, of which nothing is read again."""
        self._file = file
        self._index = indexes.offsets
        self._latest = indexes.latest
        self._aborted = aborted

    # Appending

    def create(self, config: LogConfig) -> None:
        """Make the file of a new segment, whatever was there."""
        file = OpenFile(self.path(), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if config.preallocate:
            os.ftruncate(file.fd, config.segment_bytes)
        self.draw_jitter(config)

    def resume(self, indexes: IndexBuilder) -> None:
        """Go on appending, with what the index files hold."""
        self.indexes = indexes
        self._offsets_written = len(indexes.offsets)
        self._times_written = len(indexes.times)

    def append(self, data: memoryview, last_offset: int, max_timestamp: int) -> None:
        """Write a batch at the end. Where that fails, the segment is as it was."""
        indexes = self.indexes
        assert indexes is not None, "a closed segment"
        position = self.size
        (self._file or self.file).write(data, position)
        indexes.add(position, last_offset, max_timestamp)
        if position == 0:
            self.first_timestamp = max_timestamp
        self.size = position + len(data)

    def is_full(self, config: LogConfig, more: int, last_offset: int) -> bool:
        """Whether so many bytes more, up to that offset, belong into a new segment."""
        indexes = self.indexes
        assert indexes is not None, "a closed segment"
        room = config.segment_index_bytes
        return (
            self.size > config.segment_bytes - more
            or last_offset - self.base_offset > MAX_INT
            or len(indexes.offsets.positions) >= room // offset_index.ENTRY
            or len(indexes.times.timestamps) >= room // time_index.ENTRY - 1
        )

    def waited(self, now: int, max_timestamp: int) -> int:
        """How old the segment is: by the first timestamp in it, else by the clock."""
        first = self.first_batch_timestamp()
        return max_timestamp - first if first >= 0 else now - self.created

    def draw_jitter(self, config: LogConfig) -> None:
        most = min(config.segment_jitter_ms, config.segment_ms)
        self.jitter = random.randrange(most) if most > 0 else 0

    def note_aborted(self, aborted: AbortedTxn) -> None:
        """Add to the transaction index, whose file is made with its first entry."""
        path = self.path(FileKind.TXN_INDEX)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, format_txn_index([aborted]))
        finally:
            os.close(fd)
        if self._aborted is not None:
            self._aborted.append(aborted)

    def close_appending(self) -> IndexBuilder:
        """No more batches come. What was built of the indexes is the caller's to write."""
        indexes = self.indexes
        assert indexes is not None, "a closed segment"
        indexes.close()
        path = self.path()
        if os.stat(path).st_size > self.size:  # preallocated, or half a batch on a full disk
            os.truncate(path, self.size)
        self._latest = indexes.latest
        self._index = indexes.offsets
        self.indexes = None
        return indexes

    def write_indexes(self, indexes: IndexBuilder) -> None:
        """Bring the index files up to date. Entries may be added meanwhile."""
        offsets = offset_index.encode_offset_index(indexes.offsets, max(self._offsets_written, 0))
        times = time_index.encode_time_index(indexes.times, max(self._times_written, 0))
        if offsets or self._offsets_written < 0:
            self._offsets_written = self._write_index(
                FileKind.OFFSET_INDEX, offsets, self._offsets_written, offset_index.ENTRY
            )
        if times or self._times_written < 0:
            self._times_written = self._write_index(
                FileKind.TIME_INDEX, times, self._times_written, time_index.ENTRY
            )

    def _write_index(self, kind: FileKind, data: bytes, written: int, entry: int) -> int:
        """Write entries behind those that are written; how many are then."""
        file = OpenFile(self.path(kind), os.O_RDWR | os.O_CREAT)
        start = max(written, 0) * entry
        file.write(data, start)
        # A broker that preallocates may have left zeros there, or a crash anything.
        if os.fstat(file.fd).st_size != start + len(data):
            os.ftruncate(file.fd, start + len(data))
        return (start + len(data)) // entry

    def sync(self) -> None:
        """Make the bytes of the log durable."""
        file = self.file
        os.fsync(file.fd)

    def sync_indexes(self) -> None:
        for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX):
            try:
                file = OpenFile(self.path(kind))
            except FileNotFoundError:
                continue
            os.fsync(file.fd)

    # Finding

    @property
    def offsets(self) -> OffsetIndex:
        """The offset index, built again where its file is not fit to be read."""
        if self.indexes is not None:
            return self.indexes.offsets
        index = self._index
        if index is None:
            try:
                loaded = offset_index.read_offset_index(self.path(FileKind.OFFSET_INDEX))
            except (BadData, NotKafka):
                loaded = self._rebuilt().offsets
            with _pinning:
                index = self._index = loaded if self._index is None else self._index
        return index

    @property
    def times(self) -> TimeIndex:
        if self.indexes is not None:
            return self.indexes.times
        try:
            return time_index.read_time_index(self.path(FileKind.TIME_INDEX))
        except (BadData, NotKafka):
            return self._rebuilt().times

    @property
    def latest(self) -> TimeEntry:
        """The newest timestamp, and the last offset of the first batch that has it."""
        if self.indexes is not None:
            return self.indexes.latest
        if self._latest is None:
            self._latest = self._last_time()
        return self._latest

    @property
    def age_timestamp(self) -> int:
        """What retention goes by: the newest timestamp, or when the file was written last."""
        newest = self.latest.timestamp
        return newest if newest >= 0 else int(os.stat(self.path()).st_mtime * 1000)

    def aborted(self) -> list[AbortedTxn]:
        if self._aborted is None:
            try:
                found = list(read_txn_index(self.path(FileKind.TXN_INDEX)))
            except NotKafka:
                found = []
            with _pinning:
                if self._aborted is None:
                    self._aborted = found
        return self._aborted

    def find(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch that ends at or after an offset; None where the
        segment has none."""
        end = self.size
        index = self.offsets if self.indexes is None else self.indexes.offsets
        slot = bisect_right(index.relative_offsets, offset - self.base_offset)
        position = index.positions[slot - 1] if slot else 0
        # Entries far apart are of large batches: then only headers are worth reading.
        following = index.positions[slot] if slot < len(index.positions) else end
        sight = _SIGHT if following - position <= 2 * _SIGHT else _HEADER_BYTES
        file = self._file or self.file
        while position < end:
            seen = os.pread(file.fd, min(sight, end - position), position)
            at, size = _seek(seen, 0, len(seen), offset)
            if size > 0:
                return position + at, size
            if size < 0 or at == 0:
                raise Corrupt("no batch where one was", file=self.path(), position=position + at)
            position += at
        return None

    def frames(self, position: int = 0, end: int | None = None) -> Iterator[Frame]:
        """Batches seen from outside, from a batch's position on."""
        end = self.size if end is None else end
        file = self.file if position < end else None
        while file is not None and position < end:
            seen = os.pread(file.fd, min(_WINDOW, end - position), position)
            is_last = position + len(seen) == end
            at = 0
            while at < len(seen) and (is_last or len(seen) - at >= _HEADER_BYTES):
                if len(seen) - at < _LEAST_BYTES or implausible(*_framing(seen, at)):
                    break
                frame = frame_at(seen, at, position + at)
                yield frame
                at += frame.size
            if at == 0:
                raise Corrupt("no batch where one was", file=self.path(), position=position)
            position += at

    def frames_from_time(self, timestamp: int, offset: int) -> Iterator[Frame]:
        """Batches from the first on that may have a record at or after a time and an offset."""
        return self.frames_from_offset(max(time_index.lookup(self.times, timestamp).offset, offset))

    def frames_from_offset(self, offset: int) -> Iterator[Frame]:
        """Batches from one on that is not behind an offset."""
        return self.frames(offset_index.lookup(self.offsets, offset).position)

    def read(self, position: int, size: int) -> bytes:
        file = self.file
        return os.pread(file.fd, size, position)

    def next_offset(self) -> int:
        """The offset after the last batch, found by the index."""
        positions = self.offsets.positions
        found = self.base_offset
        for frame in self.frames(positions[-1] if positions else 0):
            found = frame.last_offset + 1
        return found

    def _last_time(self) -> TimeEntry:
        """The end of the time index, without reading all of it where that can be."""
        with contextlib.suppress(FileNotFoundError):
            file = OpenFile(self.path(FileKind.TIME_INDEX))
            size = os.fstat(file.fd).st_size
            if size and size % time_index.ENTRY == 0:
                timestamp, relative = _TIME.unpack(os.pread(file.fd, _TIME.size, size - _TIME.size))
                if timestamp > 0 and relative >= 0:
                    return TimeEntry(timestamp, self.base_offset + relative)
        times = self.times
        if not times.timestamps:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(times.timestamps[-1], self.base_offset + times.relative_offsets[-1])

    def _rebuilt(self) -> IndexBuilder:
        builder = IndexBuilder(self.base_offset)
        for frame in self.frames():
            builder.add(frame.position, frame.last_offset, frame.max_timestamp)
        builder.close()
        return builder

    def first_batch_timestamp(self) -> int:
        """The newest timestamp of the first batch; -1 where there is none."""
        if self.first_timestamp is None and self.size:
            self.first_timestamp = next(self.frames()).max_timestamp
        return -1 if self.first_timestamp is None else self.first_timestamp
