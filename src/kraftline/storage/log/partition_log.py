"""A partition's log: one appender, many readers, flushes and deletions in threads.

- `append` and reads never wait for a flush. What must be flushed before it is acknowledged says
  so (`Appended.must_flush`).
- Readers take the list of segments once; it is replaced, never changed.
- `flush`, `delete_old_segments` and `close` may be called from any thread. Whoever changes the
  log holds `_lock`, and only for moments; whoever works on its closed segments holds `_upkeep`.
- What the disk refuses leaves the log as it was.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable

import msgspec

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage import partition_metadata
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.files import sync_directory
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.log import lookups, reading, retention
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL, BatchFields, Origin
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.disk import Disk
from kraftline.storage.log.loading import Loaded, Stopped, load
from kraftline.storage.log.lookups import OffsetAt
from kraftline.storage.log.markers import read_marker
from kraftline.storage.log.problems import (
    AppendRefused,
    ErrorCode,
    InconsistentTopicId,
    LogClosed,
    OffsetOutOfRange,
)
from kraftline.storage.log.producers import Marker, ProducerStates
from kraftline.storage.log.reading import NOTHING, FileRange
from kraftline.storage.log.removals import Removals
from kraftline.storage.log.segment import SEGMENT_KINDS, Segment
from kraftline.storage.log.segments import RecentlyRead, Segments
from kraftline.storage.log.validation import admit
from kraftline.storage.names import FileKind, Working, parse_partition
from kraftline.storage.partition_metadata import PartitionMetadata, format_partition_metadata
from kraftline.storage.txn_index import AbortedTxn

PRODUCER_EXPIRATION_MS = 24 * 3_600_000  # producer.id.expiration.ms
_base_offset = struct.Struct(">q").pack_into
_leader_epoch = struct.Struct(">i").pack_into


def wall_clock() -> int:
    """Now, in ms."""
    return time.time_ns() // 1_000_000


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a batch went; for a duplicate, where it had gone before.

    `log_append_time` is -1 where times are the producer's. `must_flush`: flush.messages asks for
    a flush before this is acknowledged. `rolled`: a segment was closed and wants to be flushed.
    """

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    is_duplicate: bool = False
    must_flush: bool = False
    rolled: bool = False


class Committed(msgspec.Struct, frozen=True):
    """A range up to the last stable offset, and the aborted transactions in it."""

    range: FileRange
    aborted: list[AbortedTxn]


class PartitionLog:
    """See the module. `start_offset` and `end_offset` are those of the log, `high_watermark` is
    what its owner says, `recovery_point` is up to where all is durable."""

    __slots__ = (
        "_clock",
        "_epochs_changed",
        "_is_closed",
        "_lock",
        "_names_changed",
        "_producer_files",
        "_recent",
        "_removals",
        "_rolled",
        "_segments",
        "_upkeep",
        "config",
        "directory",
        "disk",
        "end_offset",
        "epochs",
        "high_watermark",
        "last_flush",
        "name",
        "opening",
        "partition",
        "producers",
        "recovery_point",
        "start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        loaded: Loaded,
        *,
        disk: Disk,
        removals: Removals,
        recent: RecentlyRead,
        clock: Callable[[], int],
    ) -> None:
        """Made by `open`."""
        name = parse_partition(os.path.basename(directory))
        assert name is not None, directory
        self.directory = directory
        self.topic = name.topic
        self.partition = name.partition
        self.name = f"{name.topic}-{name.partition}"
        self.topic_id = loaded.topic_id
        self.config = config
        self.opening = loaded.opening
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.start_offset
        self.last_flush = clock()
        self.disk = disk
        self._producer_files = loaded.producer_files
        self._segments = Segments(loaded.segments)
        self._rolled = loaded.unwritten
        self._removals = removals
        self._recent = recent
        self._clock = clock
        self._lock = threading.Lock()
        self._upkeep = threading.Lock()
        self._epochs_changed = bool(loaded.opening.recovered_segments)
        self._names_changed = True
        self._is_closed = False

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        stopped: Stopped | None = None,
        topic_id: Uuid | None = None,
        disk: Disk | None = None,
        removals: Removals | None = None,
        recent: RecentlyRead | None = None,
        clock: Callable[[], int] = wall_clock,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    ) -> PartitionLog:
        """Open a partition's directory, which is made where it is not there yet.

        `stopped` says how it was left; without it nothing is trusted.
        """
        folder = os.path.abspath(directory)
        config = config or LogConfig()
        disk = disk or Disk(os.path.dirname(folder))
        with disk.doing(f"opening {os.path.basename(folder)}"):
            os.makedirs(folder, exist_ok=True)
            producers = ProducerStates(os.path.basename(folder), producer_expiration_ms)
            loaded = load(folder, config, stopped or Stopped(clean=False), producers, clock())
            log = cls(
                folder,
                config,
                loaded,
                disk=disk,
                removals=Removals() if removals is None else removals,
                recent=RecentlyRead() if recent is None else recent,
                clock=clock,
            )
            if topic_id is not None:
                log._claim(topic_id)
        return log

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.start_offset} to {self.end_offset})"

    # What there is

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return self._segments.size

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments.all

    @property
    def unflushed_messages(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is open, and everything is below the high watermark."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.start_offset)

    # Appending

    def append(
        self,
        records: memoryview | bytearray | bytes,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
    ) -> Appended:
        """Take one batch in as the leader: check it, give it its offsets, write it.

        The buffer is written to where it can be (its header gets offset, epoch and times).
        AppendRefused where Kafka would refuse it, StorageFailed where the disk does.
        """
        data = records if type(records) is memoryview else memoryview(records)
        if data.readonly:
            data = memoryview(bytearray(data))
        now = self._clock()
        batch = admit(data, self.config, origin, now, self.name)
        with self._lock:
            self._check_open()
            batch.base_offset = self.end_offset
            marker = None
            if batch.producer_id >= 0:
                duplicate, marker = self._check_producer(batch, origin)
                if duplicate is not None:
                    return duplicate
            rolled = self._make_room(len(batch.data), batch.last_offset, batch.max_timestamp, now)
            _base_offset(batch.data, 0, batch.base_offset)
            _leader_epoch(batch.data, 12, leader_epoch)
            self._write(batch.data, batch.last_offset, batch.max_timestamp)
            if leader_epoch != self.epochs.latest:
                self._epochs_changed |= self.epochs.assign(leader_epoch, batch.base_offset)
            if batch.producer_id >= 0:
                self._note_producer(batch, marker)
            self.producers.end_offset = self.end_offset
            return Appended(
                batch.base_offset,
                self.end_offset - 1,
                batch.log_append_time,
                self.start_offset,
                False,
                self.end_offset - self.recovery_point >= self.config.flush_messages,
                rolled,
            )

    def assign_epoch(self, epoch: int) -> None:
        """A leader epoch starts at the log's end."""
        with self._lock:
            self._epochs_changed |= self.epochs.assign(epoch, self.end_offset)

    def update_high_watermark(self, offset: int) -> int:
        """Everything below the offset is on enough replicas; the high watermark then."""
        with self._lock:
            self.high_watermark = offset = min(max(offset, self.start_offset), self.end_offset)
            self.producers.replicated(offset)
            return offset

    def roll(self) -> None:
        """Begin a new segment at the log's end, unless the active one is empty."""
        with self._lock:
            self._check_open()
            self._roll(self.end_offset)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        up_to: int | None = None,
        at_least_one: bool = True,
    ) -> FileRange:
        """The bytes from the batch on that has the offset, below `up_to` (the log's end unless
        told). With `at_least_one`, a first batch larger than `max_bytes` is given whole.
        OffsetOutOfRange outside of the log."""
        found = self._found(offset, up_to)
        if found is None:
            return NOTHING
        return self._range(found, max_bytes, up_to, at_least_one)

    def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> Committed:
        """The same up to the last stable offset, with the transactions that were aborted."""
        stable = self.last_stable_offset
        found = self._found(offset, stable)
        if found is None:
            return Committed(NOTHING, [])
        given = self._range(found, max_bytes, stable, at_least_one)
        if given.length == 0:
            return Committed(NOTHING, [])
        segments = self._segments
        end = reading.upper_bound(segments, found, given.length, self.end_offset)
        return Committed(given, reading.aborted_in(segments, found, offset, end))

    def earliest(self) -> OffsetAt:
        entries = self.epochs.entries
        known = bool(entries) and entries[0].start_offset <= self.start_offset
        return OffsetAt(self.start_offset, leader_epoch=entries[0].epoch if known else None)

    def latest(self) -> OffsetAt:
        return OffsetAt(self.end_offset, leader_epoch=self.epochs.latest)

    def offset_at_time(self, timestamp: int) -> OffsetAt | None:
        """The first record that is not older than a time (ms); None if all are older."""
        with self.disk.doing(f"looking for a time in {self.name}"):
            return lookups.first_at_or_after(self._segments, timestamp, self.start_offset)

    def newest_record(self) -> OffsetAt | None:
        """The first record with the largest timestamp; None where no record has one."""
        with self.disk.doing(f"looking for the newest record of {self.name}"):
            return lookups.newest(self._segments)

    def end_of_epoch(self, epoch: int) -> EpochStart | None:
        """The largest epoch known up to this one, and the offset where it ends."""
        return self.epochs.end_offset_of(epoch, self.end_offset)

    # Upkeep

    def flush_due(self, now: int) -> bool:
        """Whether flush.ms has passed since the last flush, and there is something to flush."""
        return now - self.last_flush >= self.config.flush_ms and self.has_unflushed

    @property
    def has_unflushed(self) -> bool:
        return self.end_offset > self.recovery_point or bool(self._rolled)

    def flush(self) -> int:
        """Make everything appended so far durable; the recovery point then. In any thread."""
        with self._upkeep:
            with self._lock:
                self._check_open()
                end_offset, active = self.end_offset, self._segments.active
                rolled, indexes_now = list(self._rolled), active.indexes
                epochs = LeaderEpochs(self.epochs.entries) if self._epochs_changed else None
                self._epochs_changed = False
                names, self._names_changed = self._names_changed, False
            try:
                for segment, indexes in rolled:
                    segment.write_indexes(indexes)
                if indexes_now is not None:
                    active.write_indexes(indexes_now)
                if epochs is not None:
                    epochs.write(self.directory)
            except (OSError, NotKafka) as error:
                self._epochs_changed, self._names_changed = True, True
                raise self.disk.failed(_cause(error), f"writing indexes of {self.name}") from error
            try:
                for segment, _ in rolled:
                    segment.sync()
                    segment.sync_indexes()
                active.sync()
                self._producer_files.sync()
                if names:
                    self._sync_names()
            except OSError as error:
                raise self.disk.lost(error, f"flushing {self.name}") from error
            with self._lock:
                del self._rolled[: len(rolled)]
                self.recovery_point = max(self.recovery_point, end_offset)
                self.last_flush = self._clock()
                return self.recovery_point

    def advance_start(self, offset: int) -> bool:
        """The log starts at the offset now (DeleteRecords); whether that is news."""
        with self._lock:
            self._check_open()
            return self._advance_start(offset)

    def delete_old_segments(self) -> int:
        """Delete what retention says, whole segments; how many went. In any thread.

        Their files have the suffix `.deleted` then, and go after file.delete.delay.ms.
        """
        with self._upkeep, self.disk.doing(f"deleting segments of {self.name}"):
            with self._lock:
                self._check_open()
                now = self._clock()
                count = retention.over(
                    self._segments,
                    self.config,
                    start_offset=self.start_offset,
                    end_offset=self.end_offset,
                    high_watermark=self.high_watermark,
                    now=now,
                )
                if count == len(self._segments.all):
                    self._roll(self.end_offset)
                gone = self._segments.all[:count]
                if not gone:
                    return 0
                self._segments = Segments(self._segments.all[count:])
                self._advance_start(self._segments.first.base_offset)
                self._rolled = [each for each in self._rolled if each[0] not in gone]
                for segment in gone:
                    self._producer_files.forget(segment.base_offset)
            self._mark_deleted(gone, now + self.config.file_delete_delay_ms)
            return len(gone)

    def expire_producers(self) -> None:
        """Forget producers that have been silent for producer.id.expiration.ms."""
        with self._lock:
            self.producers.expire(self._clock())

    def close(self) -> None:
        """A clean stop: everything flushed, indexes ended, producers noted. In any thread."""
        if self._is_closed:
            return
        with self.disk.doing(f"closing {self.name}"):
            with self._lock:
                self._producer_files.take(self.producers)
            if self.has_unflushed or self._epochs_changed or self._producer_files.unsynced:
                self.flush()
            with self._upkeep, self._lock:
                active = self._segments.active
                active.write_indexes(active.close_appending())
                if self._names_changed:
                    self._sync_names()
                self._let_go()

    def release(self) -> None:
        """Let go of the files as they are; all that can be done where a disk has failed."""
        with self._lock:
            self._let_go()

    def move(self, directory: str) -> None:
        """The directory gets another name, and the log is closed: on the way to its deletion."""
        with self._upkeep, self._lock, self.disk.doing(f"renaming {self.name}"):
            os.rename(self.directory, directory)
            self.directory = directory
            self._let_go()

    # Inside; the lock is held

    def _check_open(self) -> None:
        if self._is_closed:
            raise LogClosed(f"{self.name} is closed")
        if self.disk.failure is not None:
            self.disk.check()

    def _check_producer(
        self, batch: BatchFields, origin: Origin
    ) -> tuple[Appended | None, Marker | None]:
        states = self.producers
        if batch.attributes & CONTROL:
            marker = read_marker(batch.data, 0, len(batch.data))
            if marker is not None:
                states.check_marker(
                    batch.producer_id, batch.producer_epoch, marker, batch.base_offset
                )
            return None, marker
        if origin is Origin.CLIENT:
            kept = states.duplicate(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence
            )
            if kept is not None:
                first, last, when = kept.first_offset, kept.last_offset, kept.timestamp
                return Appended(first, last, when, self.start_offset, is_duplicate=True), None
        states.check_batch(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.base_offset,
            origin,
            bool(batch.attributes & TRANSACTIONAL),
        )
        return None, None

    def _note_producer(self, batch: BatchFields, marker: Marker | None) -> None:
        if not batch.attributes & CONTROL:
            self.producers.add_batch(
                batch.producer_id,
                batch.producer_epoch,
                batch.last_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                bool(batch.attributes & TRANSACTIONAL),
            )
        elif marker is not None:
            aborted = self.producers.add_marker(
                batch.producer_id,
                batch.producer_epoch,
                marker,
                batch.base_offset,
                batch.max_timestamp,
            )
            if aborted is not None:
                try:
                    self._segments.active.note_aborted(aborted)
                except OSError as error:
                    # The marker is in the log and its entry is not: only opening it again helps.
                    doing = f"writing the transaction index of {self.name}"
                    raise self.disk.lost(error, doing) from error

    def _make_room(self, size: int, last_offset: int, max_timestamp: int, now: int) -> bool:
        """Roll where a batch does not belong into the active segment any more."""
        config = self.config
        if size > config.segment_bytes:
            raise AppendRefused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes for {self.name}, where segment.bytes is "
                f"{config.segment_bytes}",
                tells_start=False,
            )
        active = self._segments.active
        if active.is_full(config, size, last_offset) or (
            active.size and active.waited(now, max_timestamp) > config.segment_ms - active.jitter
        ):
            return self._roll(self.end_offset)
        return False

    def _roll(self, base_offset: int) -> bool:
        segments = self._segments
        old = segments.active
        if old.size == 0 and old.base_offset == base_offset:
            return False
        new = Segment(
            self.directory,
            base_offset,
            created=self._clock(),
            indexes=IndexBuilder(base_offset, self.config.index_interval_bytes),
        )
        try:
            new.create(self.config)
            self._rolled.append((old, old.close_appending()))
        except OSError as error:
            raise self.disk.failed(error, f"beginning a segment of {self.name}") from error
        self._recent.touch(old)
        self._segments = Segments((*segments.all, new))
        self._names_changed = True
        self.producers.end_offset = base_offset
        try:
            self._producer_files.take(self.producers)
        except OSError as error:
            raise self.disk.failed(error, f"noting the producers of {self.name}") from error
        return True

    def _write(self, data: memoryview, last_offset: int, max_timestamp: int) -> None:
        try:
            self._segments.active.append(data, last_offset, max_timestamp)
        except OSError as error:
            raise self.disk.failed(error, f"appending to {self.name}") from error
        self.end_offset = last_offset + 1

    def _advance_start(self, offset: int) -> bool:
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"{self.name} cannot start at {offset}: its high watermark is {self.high_watermark}"
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.cut_start(offset)
        self._epochs_changed = True
        self.producers.replicated(offset)
        self._producer_files.start_moved(self.producers, offset)
        return True

    def _let_go(self) -> None:
        self._is_closed = True
        for segment in self._segments.all:
            segment.let_go()

    # Inside; no lock is needed

    def _found(self, offset: int, up_to: int | None) -> reading.Found | None:
        end_offset = self.end_offset
        if offset < self.start_offset or offset > end_offset:
            raise OffsetOutOfRange(
                f"{self.name} has offsets from {self.start_offset} to {end_offset}, not {offset}"
            )
        if self.disk.failure is not None or self._is_closed:
            self._check_open()
        if offset >= (end_offset if up_to is None else up_to):
            return None
        try:
            return reading.find(self._segments, offset, self._recent)
        except FileNotFoundError:
            # Deleted since its list was taken: the log starts later now.
            raise OffsetOutOfRange(f"{self.name} no longer has offset {offset}") from None
        except OSError as error:
            raise self.disk.failed(error, f"reading {self.name}") from error

    def _range(
        self, found: reading.Found, max_bytes: int, up_to: int | None, at_least_one: bool
    ) -> FileRange:
        segment, place = found.segment, found.place
        end = segment.size
        if up_to is not None and up_to < self.end_offset:
            following = self._segments.following(segment)
            if following is None or up_to < following.base_offset:
                bound = segment.find(up_to)
                end = end if bound is None else bound.position
        length = max(max_bytes, place.size) if at_least_one else max_bytes
        length = min(length, end - place.position)
        return FileRange(segment.file, place.position, length) if length > 0 else NOTHING

    def _mark_deleted(self, segments: tuple[Segment, ...], due: int) -> None:
        for segment in segments:
            snapshot = segment.path(FileKind.PRODUCER_SNAPSHOT)
            for path in (*map(segment.path, SEGMENT_KINDS), snapshot):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, path + Working.DELETED.value)
                    self._removals.add(path + Working.DELETED.value, due)
            segment.let_go()

    def _claim(self, topic_id: Uuid) -> None:
        if self.topic_id is None:
            path = os.path.join(self.directory, partition_metadata.NAME)
            with open(path, "wb") as file:
                file.write(format_partition_metadata(PartitionMetadata(topic_id)))
            self.topic_id = topic_id
        elif self.topic_id != topic_id:
            raise InconsistentTopicId(
                f"{self.directory} has the topic id {self.topic_id}, not {topic_id}"
            )

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


def _cause(error: OSError | NotKafka) -> OSError:
    """The error of the disk, which writers of small files put into words."""
    found = error if isinstance(error, OSError) else error.__cause__
    assert isinstance(found, OSError)
    return found
