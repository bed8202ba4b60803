"""The files of an open log: segments appended to, rolled, read, flushed and deleted.

`PartitionLog` holds its lock around what changes the list of segments; reading needs none, since
lists are replaced and never changed. What works on closed segments (flush, deletion, close) is
kept apart by `PartitionLog` as well, and may be slow.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from kraftline.errors import NotKafka
from kraftline.storage import partition_metadata
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.files import sync_directory
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.log import reading
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.disk import Disk
from kraftline.storage.log.loading import Loaded
from kraftline.storage.log.problems import DiskFull, OffsetOutOfRange
from kraftline.storage.log.producers import ProducerStates
from kraftline.storage.log.reading import NOTHING, FileRange, Found
from kraftline.storage.log.removals import Removals
from kraftline.storage.log.segment import SEGMENT_KINDS, Segment
from kraftline.storage.log.segments import RecentlyRead, Segments
from kraftline.storage.names import FileKind, Working
from kraftline.storage.txn_index import AbortedTxn

_Found = TypeVar("_Found")


class Unflushed(msgspec.Struct, frozen=True):
    """What a flush has to do: taken at one moment, done while appends go on."""

    rolled: tuple[tuple[Segment, IndexBuilder], ...]
    active: Segment
    indexes: IndexBuilder
    epochs: tuple[EpochStart, ...] | None
    names: bool


class LogFiles:
    """`rolled` are closed segments whose indexes are not written and flushed yet."""

    __slots__ = (
        "_index_files",
        "_names_changed",
        "_recent",
        "_removals",
        "_renaming",
        "config",
        "directory",
        "disk",
        "name",
        "producers",
        "rolled",
        "segments",
    )

    def __init__(
        self,
        directory: str,
        name: str,
        config: LogConfig,
        loaded: Loaded,
        disk: Disk,
        removals: Removals,
        recent: RecentlyRead,
    ) -> None:
        self.directory = directory
        self.name = name
        self.config = config
        self.disk = disk
        self.segments = Segments(loaded.segments)
        self.rolled = loaded.unwritten
        self.producers = loaded.producer_files
        self._removals = removals
        self._recent = recent
        self._names_changed = not loaded.as_left
        # A roll may meet a flush at the same index files.
        self._index_files = threading.Lock()
        # Held while names of segments' files go from one to another.
        self._renaming = threading.Lock()

    # Appending; the lock is held

    def is_full(self, size: int, last_offset: int, max_timestamp: int, now: int) -> bool:
        """Whether a batch belongs into a new segment."""
        config, active = self.config, self.segments.active
        return active.is_full(config, size, last_offset) or (
            active.size > 0
            and active.waited(now, max_timestamp) > config.segment_ms - active.jitter
        )

    def write(self, data: memoryview, last_offset: int, max_timestamp: int) -> None:
        try:
            self.segments.active.append(data, last_offset, max_timestamp)
        except OSError as error:
            raise self.disk.failed(error, f"appending to {self.name}") from error

    def note_aborted(self, aborted: AbortedTxn) -> None:
        try:
            self.segments.active.note_aborted(aborted)
        except OSError as error:
            # The marker is in the log and its entry is not: only opening it again helps.
            raise self.disk.lost(error, f"noting an aborted transaction of {self.name}") from error

    def roll(self, base_offset: int, states: ProducerStates, now: int) -> bool:
        """Begin a new segment, unless the active one is empty; whether that was so."""
        old = self.segments.active
        if old.size == 0 and old.base_offset == base_offset:
            return False
        indexes = IndexBuilder(base_offset, self.config.index_interval_bytes)
        new = Segment(self.directory, base_offset, created=now, indexes=indexes)
        try:
            new.create(self.config)
            built = old.close_appending()
            self.rolled.append((old, built))
            self._recent.touch(old)
            self.segments = Segments((*self.segments.all, new))
            self._names_changed = True
            states.end_offset = base_offset
            self.producers.take(states)
            # Now, so that a kill leaves whole indexes; a full disk can wait for the flush.
            with self._index_files:
                old.write_indexes(built)
        except OSError as error:
            failed = self.disk.failed(error, f"beginning a segment of {self.name}")
            if self.segments.active is new and isinstance(failed, DiskFull):
                return True
            raise failed from error
        return True

    def drop(self, count: int) -> tuple[Segment, ...]:
        """Take the first segments out of the log; their files are the caller's to mark."""
        gone = self.segments.all[:count]
        self.segments = Segments(self.segments.all[count:])
        self.rolled = [each for each in self.rolled if each[0] not in gone]
        for segment in gone:
            self.producers.forget(segment.base_offset)
        return gone

    def unflushed(self, epochs: LeaderEpochs | None) -> Unflushed:
        """What is to be flushed now; `epochs` where they have changed."""
        active = self.segments.active
        assert active.indexes is not None, "the active segment is appended to"
        found = Unflushed(
            tuple(self.rolled),
            active,
            active.indexes,
            None if epochs is None else epochs.entries,
            self._names_changed,
        )
        self._names_changed = False
        return found

    def flushed(self, done: Unflushed) -> None:
        del self.rolled[: len(done.rolled)]

    # Reading; no lock is needed

    def find(self, offset: int) -> Found | None:
        try:
            return self.look(lambda segments: reading.find(segments, offset, self._recent))
        except FileNotFoundError:
            # Deleted since the list of segments was taken: the log starts later now.
            raise OffsetOutOfRange(f"{self.name} no longer has offset {offset}") from None
        except OSError as error:
            raise self.disk.failed(error, f"reading {self.name}") from error

    def look(self, search: Callable[[Segments], _Found]) -> _Found:
        """Look for something in all segments; again where they were deleted or cleaned since the
        list of them was taken."""
        segments = self.segments
        try:
            return search(segments)
        except FileNotFoundError:
            with self._renaming:
                now = self.segments
            if now is segments:
                raise
            return search(now)

    def range(
        self, found: Found, max_bytes: int, up_to: int | None, at_least_one: bool
    ) -> FileRange:
        """What is read from a batch on, below an offset (None: to the end)."""
        try:
            return self._range(found, max_bytes, up_to, at_least_one)
        except FileNotFoundError:
            raise OffsetOutOfRange(f"{self.name} no longer has what was asked for") from None
        except OSError as error:
            raise self.disk.failed(error, f"reading {self.name}") from error

    def _range(
        self, found: Found, max_bytes: int, up_to: int | None, at_least_one: bool
    ) -> FileRange:
        segment, start = found.segment, found.position
        end = segment.size
        if up_to is not None:
            following = found.segments.following(segment)
            if following is None or up_to < following.base_offset:
                bound = segment.find(up_to)
                end = end if bound is None else bound[0]
        if max_bytes < found.size and not at_least_one:
            return NOTHING
        length = min(max(max_bytes, found.size), end - start)
        return FileRange(segment.file, start, length) if length > 0 else NOTHING

    def aborted(self, found: Found, given: FileRange, offset: int, end: int) -> list[AbortedTxn]:
        """The aborted transactions that a consumer of a range has to know."""
        bound = reading.upper_bound(found, given.length, end)
        return reading.aborted_from(found.segments, found.slot, offset, bound)

    # Slow work, one at a time

    def flush(self, work: Unflushed) -> None:
        """Make durable what was unflushed at its moment."""
        try:
            with self._index_files:
                for segment, indexes in (*work.rolled, (work.active, work.indexes)):
                    segment.write_indexes(indexes)
            if work.epochs is not None:
                LeaderEpochs(work.epochs).write(self.directory)
        except (OSError, NotKafka) as error:
            self._names_changed |= work.names
            raise self.disk.failed(_cause(error), f"writing indexes of {self.name}") from error
        try:
            for segment, _ in work.rolled:
                segment.sync()
                segment.sync_indexes()
            work.active.sync()
            self.producers.sync()
            if work.names:
                self._sync_names()
        except OSError as error:
            raise self.disk.lost(error, f"flushing {self.name}") from error

    def mark_deleted(self, segments: tuple[Segment, ...], due: int) -> None:
        """Give the files of dropped segments their last suffix; they go when it is time."""
        for segment in segments:
            self._mark_deleted(segment, (*SEGMENT_KINDS, FileKind.PRODUCER_SNAPSHOT), due)
            segment.let_go()

    def _mark_deleted(self, segment: Segment, kinds: Iterable[FileKind], due: int) -> None:
        for path in map(segment.path, kinds):
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, path + Working.DELETED.value)
                self._removals.add(path + Working.DELETED.value, due)

    def swap(
        self, old: tuple[Segment, ...], new: Segment, due: int, installing: threading.Lock
    ) -> None:
        """Let a cleaned segment take the place of those that it was made of.

        In Kafka's order, so that whoever opens the log after a crash, we or Kafka, either finishes
        the swap or undoes it: `.cleaned` becomes `.swap` (from then on the new segment counts), the
        old files become `.deleted`, `.swap` goes away. The snapshot of producers where the first
        one began stays, those of the others go. `installing` is held for the moment in which the
        list of segments changes.
        """
        for segment in (*old, new):
            segment.pin()
        try:
            with self._renaming:
                _rename(new, Working.CLEANED, Working.SWAP)
                with installing:
                    self._install(old, new)
                for segment in old:
                    kinds = [*SEGMENT_KINDS]
                    if segment.base_offset != new.base_offset:
                        kinds.append(FileKind.PRODUCER_SNAPSHOT)
                    self._mark_deleted(segment, kinds, due)
                _rename(new, Working.SWAP, Working.NONE)
            sync_directory(self.directory)
        except OSError as error:
            # Some names are the new ones, some the old: only opening the log again helps.
            raise self.disk.lost(error, f"swapping in a segment of {self.name}") from error
        new.unpin()

    def _install(self, old: tuple[Segment, ...], new: Segment) -> None:
        segments = self.segments.all
        at = segments.index(old[0])
        self.segments = Segments((*segments[:at], new, *segments[at + len(old) :]))
        self.rolled = [each for each in self.rolled if each[0] not in old]
        for segment in old:
            segment.is_replaced = True
            self._recent.forget(segment)
            if segment.base_offset != new.base_offset:
                self.producers.forget(segment.base_offset)

    def close(self) -> None:
        """A clean end: index files as Kafka leaves them. All else is flushed already."""
        active = self.segments.active
        active.write_indexes(active.close_appending())
        if self._names_changed:
            self._sync_names()

    def rename(self, directory: str) -> None:
        os.rename(self.directory, directory)
        self.directory = self.producers.directory = directory
        self.producers.unsynced = [
            os.path.join(directory, os.path.basename(path)) for path in self.producers.unsynced
        ]
        for segment in self.segments.all:
            segment.directory = directory
        self._names_changed = True

    def move(self, directory: str) -> None:
        os.rename(self.directory, directory)
        self.directory = directory

    def let_go(self) -> None:
        for segment in self.segments.all:
            segment.let_go()

    def _sync_names(self) -> None:
        """A name that is not flushed may be gone after a crash, with all that is behind it."""
        path = os.path.join(self.directory, partition_metadata.NAME)
        if os.path.exists(path):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_directory(self.directory)
        sync_directory(os.path.dirname(self.directory))
        self._names_changed = False


def _rename(segment: Segment, before: Working, after: Working) -> None:
    """The `.log` first: one whose companions did not follow it is undone by whoever opens it."""
    os.rename(segment.path(FileKind.LOG, before), segment.path(FileKind.LOG, after))
    for kind in SEGMENT_KINDS[1:]:
        with contextlib.suppress(FileNotFoundError):  # only some have transactions
            os.rename(segment.path(kind, before), segment.path(kind, after))


def _cause(error: OSError | NotKafka) -> OSError:
    """The error of the disk, which writers of small files put into words."""
    found = error if isinstance(error, OSError) else error.__cause__
    assert isinstance(found, OSError)
    return found
