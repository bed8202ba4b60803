"""A partition's log: one appender, many readers, flushes and deletions in threads.

- `append` and reads never wait for a flush. What must be flushed before it is acknowledged says
  so (`Appended.must_flush`).
- Readers take the list of segments once; it is replaced, never changed.
- `flush`, `delete_old_segments` and `close` may be called from any thread. Whoever changes the
  log holds `_lock`, and only for moments; whoever works on its closed segments holds `_upkeep`.
- What the disk refuses leaves the log as it was.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable

import msgspec

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.log import lookups, retention
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL, BatchFields, Origin
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.disk import Disk
from kraftline.storage.log.loading import Stopped, load
from kraftline.storage.log.log_cleaned import CleanedLog
from kraftline.storage.log.log_copies import CopiedLog
from kraftline.storage.log.log_files import LogFiles
from kraftline.storage.log.lookups import OffsetAt
from kraftline.storage.log.markers import read_marker
from kraftline.storage.log.problems import (
    AppendRefused,
    ErrorCode,
    OffsetOutOfRange,
    StorageFailed,
)
from kraftline.storage.log.producers import Marker, ProducerStates
from kraftline.storage.log.reading import NOTHING, FileRange, Found
from kraftline.storage.log.removals import Removals
from kraftline.storage.log.segments import RecentlyRead
from kraftline.storage.log.validation import admit
from kraftline.storage.names import parse_partition
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


class PartitionLog(CopiedLog, CleanedLog):
    """See the module."""

    __slots__ = ()

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
        name = parse_partition(os.path.basename(folder))
        if name is None:
            raise NotKafka(f"{folder}: not the name of a partition's directory")
        config = config or LogConfig()
        disk = disk or Disk(os.path.dirname(folder))
        with disk.doing(f"opening {os.path.basename(folder)}"):
            is_new = _make_directory(folder)
            text = f"{name.topic}-{name.partition}"
            producers = ProducerStates(text, producer_expiration_ms)
            left = stopped or Stopped(clean=False)
            loaded = load(folder, config, left, producers, clock(), is_new=is_new)
            files = LogFiles(
                folder,
                text,
                config,
                loaded,
                disk,
                Removals() if removals is None else removals,
                RecentlyRead() if recent is None else recent,
            )
            log = cls(files, name.topic, name.partition, loaded, clock)
            if topic_id is not None:
                log.claim(topic_id)
        return log

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.start_offset} to {self.end_offset})"

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
        batch = admit(data, self._files.config, origin, now, self.name)
        return self._append(batch, leader_epoch, origin, now)

    def append_made(self, batch: BatchFields, leader_epoch: int, origin: Origin) -> Appended:
        """Take in a batch that this broker has made itself, all of it as the topic asks for."""
        return self._append(batch, leader_epoch, origin, self._clock())

    def _append(self, batch: BatchFields, leader_epoch: int, origin: Origin, now: int) -> Appended:
        files = self._files
        data, count, max_timestamp = batch.data, batch.count, batch.max_timestamp
        with self._lock:
            if self._is_closed or self.disk.failure is not None:
                self._check_open()
            batch.base_offset = first = self.end_offset
            marker = None
            if batch.producer_id >= 0:
                duplicate, marker = self._check_producer(batch, origin)
                if duplicate is not None:
                    return duplicate
            rolled = files.is_full(len(data), first + count - 1, max_timestamp, now)
            if rolled:
                self._check_fits(len(data))
                rolled = files.roll(first, self.producers, now)
            _base_offset(data, 0, first)
            _leader_epoch(data, 12, leader_epoch)
            files.write(data, first + count - 1, max_timestamp)
            self.end_offset = self.producers.end_offset = first + count
            if leader_epoch != self.epochs.latest:
                self._epochs_changed |= self.epochs.assign(leader_epoch, first)
            if batch.producer_id >= 0:
                self._note_producer(batch, marker)
            return Appended(
                first,
                first + count - 1,
                batch.log_append_time,
                self.start_offset,
                False,
                first + count - self.recovery_point >= files.config.flush_messages,
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
            self._files.roll(self.end_offset, self.producers, self._clock())

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
        told). A first batch larger than `max_bytes` is given whole with `at_least_one`, else not
        at all. OffsetOutOfRange outside of the log."""
        if up_to is None or up_to >= self.end_offset:
            up_to = None
        found = self._found(offset, up_to)
        if found is None:
            return NOTHING
        return self._files.range(found, max_bytes, up_to, at_least_one)

    def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> Committed:
        """The same up to the last stable offset, with the transactions that were aborted."""
        stable = self.last_stable_offset
        bound = None if stable >= self.end_offset else stable
        found = self._found(offset, bound)
        if found is None:
            return Committed(NOTHING, [])
        given = self._files.range(found, max_bytes, bound, at_least_one)
        if given.length == 0:
            return Committed(NOTHING, [])
        return Committed(given, self._files.aborted(found, given, offset, self.end_offset))

    def earliest(self) -> OffsetAt:
        entries = self.epochs.entries
        known = bool(entries) and entries[0].start_offset <= self.start_offset
        return OffsetAt(self.start_offset, leader_epoch=entries[0].epoch if known else None)

    def latest(self) -> OffsetAt:
        return OffsetAt(self.end_offset, leader_epoch=self.epochs.latest)

    def offset_at_time(self, timestamp: int) -> OffsetAt | None:
        """The first record that is not older than a time (ms); None if all are older."""
        with self.disk.doing(f"looking for a time in {self.name}"):
            return self._files.look(
                lambda segments: lookups.first_at_or_after(segments, timestamp, self.start_offset)
            )

    def newest_record(self) -> OffsetAt | None:
        """The first record with the largest timestamp; None where no record has one."""
        with self.disk.doing(f"looking for the newest record of {self.name}"):
            return self._files.look(lookups.newest)

    def end_of_epoch(self, epoch: int) -> EpochStart | None:
        """The largest epoch known up to this one, and the offset where it ends."""
        return self.epochs.end_offset_of(epoch, self.end_offset)

    # Upkeep

    def flush_due(self, now: int) -> bool:
        """Whether flush.ms has passed since the last flush, and there is something to flush."""
        return now - self.last_flush >= self.config.flush_ms and self.has_unflushed

    @property
    def has_unflushed(self) -> bool:
        return self.end_offset > self.recovery_point or bool(self._files.rolled)

    def flush(self) -> int:
        """Make everything appended so far durable; the recovery point then. In any thread."""
        with self._upkeep:
            with self._lock:
                self._check_open()
                end_offset = self.end_offset
                work = self._files.unflushed(self.epochs if self._epochs_changed else None)
                self._epochs_changed = False
            try:
                self._files.flush(work)
            except StorageFailed:
                self._epochs_changed |= work.epochs is not None
                raise
            with self._lock:
                self._files.flushed(work)
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
        files = self._files
        with self._upkeep, self.disk.doing(f"deleting segments of {self.name}"):
            with self._lock:
                self._check_open()
                now = self._clock()
                count = retention.over(
                    files.segments,
                    files.config,
                    start_offset=self.start_offset,
                    end_offset=self.end_offset,
                    high_watermark=self.high_watermark,
                    now=now,
                )
                if count == 0:
                    return 0
                if count == len(files.segments.all):
                    files.roll(self.end_offset, self.producers, now)
                gone = files.drop(count)
                self._advance_start(files.segments.first.base_offset)
            files.mark_deleted(gone, now + files.config.file_delete_delay_ms)
            return len(gone)

    def expire_producers(self) -> None:
        """Forget producers that have been silent for producer.id.expiration.ms."""
        with self._lock:
            self.producers.expire(self._clock())

    def close(self) -> None:
        """A clean stop: everything flushed, indexes ended, producers noted. In any thread."""
        if self._is_closed:
            return
        files = self._files
        with self.disk.doing(f"closing {self.name}"):
            with self._lock:
                files.producers.take(self.producers)
            if self.has_unflushed or self._epochs_changed or files.producers.unsynced:
                self.flush()
            with self._upkeep, self._lock:
                files.close()
                self._let_go()

    def release(self) -> None:
        """Let go of the files as they are; all that can be done where a disk has failed."""
        with self._lock:
            self._let_go()

    def rename(self, directory: str) -> None:
        """The directory gets another name, and the log goes on."""
        with self._upkeep, self._lock, self.disk.doing(f"renaming {self.name}"):
            self._files.rename(directory)

    def move(self, directory: str) -> None:
        """The directory gets another name, and the log is closed: on the way to its deletion."""
        with self._upkeep, self._lock, self.disk.doing(f"renaming {self.name}"):
            self._files.move(directory)
            self._let_go()

    # Inside; the lock is held

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

    def _check_fits(self, size: int) -> None:
        if size > self.config.segment_bytes:
            raise AppendRefused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes for {self.name}, where segment.bytes is "
                f"{self.config.segment_bytes}",
                tells_start=False,
            )

    # Inside; no lock is needed

    def _found(self, offset: int, up_to: int | None) -> Found | None:
        end_offset = self.end_offset
        if offset < self.start_offset or offset > end_offset:
            raise OffsetOutOfRange(
                f"{self.name} has offsets from {self.start_offset} to {end_offset}, not {offset}"
            )
        if self._is_closed or self.disk.failure is not None:
            self._check_open()
        if offset >= (end_offset if up_to is None else up_to):
            return None
        return self._files.find(offset)


def _make_directory(path: str) -> bool:
    """Whether it was not there before, so that nothing can be in it."""
    try:
        os.mkdir(path)
    except (FileExistsError, FileNotFoundError):
        os.makedirs(path, exist_ok=True)
        return False
    return True
