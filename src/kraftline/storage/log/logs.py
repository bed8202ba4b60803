"""All partition logs of one log directory: opened together, checkpointed, closed together.

A broker has one of these per log directory. Its lock is held from `open` to `close`; the marker
of a clean stop is there only while no one has the directory open.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage import clean_shutdown
from kraftline.storage.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    PartitionOffset,
    format_offset_checkpoint,
)
from kraftline.storage.clean_shutdown import CleanShutdown, write_clean_shutdown
from kraftline.storage.files import Path, write_if_other
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.disk import Disk
from kraftline.storage.log.loading import Stopped
from kraftline.storage.log.partition_log import (
    PRODUCER_EXPIRATION_MS,
    PartitionLog,
    wall_clock,
)
from kraftline.storage.log.problems import DirectoryOffline, LogClosed
from kraftline.storage.log.removals import Removals
from kraftline.storage.log.segments import RecentlyRead
from kraftline.storage.log_dir import LogDirectory, PartitionPlace, read_log_directory
from kraftline.storage.names import (
    METADATA_TOPIC,
    PartitionName,
    PartitionState,
    format_partition,
    parse_partition,
)


class Logs:
    """`was_clean`: the last stop was one; `previous_broker_epoch` is what it left, if so.

    Directories of moving (`-future`) and stray partitions are left alone, in `left_alone`.
    """

    def __init__(
        self,
        directory: Path,
        config_of: Callable[[str], LogConfig],
        *,
        lock: DirectoryLock | None = None,
        clock: Callable[[], int] = wall_clock,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        on_failure: Callable[[DirectoryOffline], None] | None = None,
    ) -> None:
        """Made by `open`."""
        self.path = os.path.abspath(directory)
        self.disk = Disk(self.path, on_failure)
        self.was_clean = False
        self.previous_broker_epoch: int | None = None
        self.notes: list[str] = []
        self.left_alone: list[str] = []
        # A cleaner has the compacted logs, and deletes from them when it does not clean them.
        self.has_cleaner = False
        self._config_of = config_of
        self._clock = clock
        self._producer_expiration_ms = producer_expiration_ms
        self._removals = Removals()
        self._recent = RecentlyRead()
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        # Gone since the last checkpoint: what the checkpoints say of them must not be believed of
        # a new partition that has the same name.
        self._moved_away: set[tuple[str, int]] = set()
        self._checkpointing = threading.Lock()
        self._own_lock = DirectoryLock(self.path) if lock is None else None

    @classmethod
    def open(
        cls,
        directory: Path,
        config_of: Callable[[str], LogConfig],
        *,
        threads: int = 2,
        lock: DirectoryLock | None = None,
        clock: Callable[[], int] = wall_clock,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        on_failure: Callable[[DirectoryOffline], None] | None = None,
    ) -> Logs:
        """Open every partition of a log directory but the metadata log's. `config_of` gives the
        config of a topic; with `lock`, the caller holds the directory already."""
        logs = cls(
            directory,
            config_of,
            lock=lock,
            clock=clock,
            producer_expiration_ms=producer_expiration_ms,
            on_failure=on_failure,
        )
        try:
            logs._load(threads)
        except BaseException:
            logs.release()
            raise
        return logs

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    @property
    def size(self) -> int:
        return sum(log.size for log in self)

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid | None = None,
        config: LogConfig | None = None,
    ) -> PartitionLog:
        """A partition's log, new where it is not there yet; `config` where it is known better than
        by the topic's name."""
        found = self._logs.get((topic, partition))
        if found is None:
            if (topic, partition) in self._moved_away:
                self.checkpoint()
            name = format_partition(PartitionName(topic, partition))
            # Nothing is there to be recovered, so the stop was as good as a clean one.
            found = self._open(os.path.join(self.path, name), topic, Stopped(), topic_id, config)
            self._logs[topic, partition] = found
        return found

    def create_future(
        self, topic: str, partition: int, topic_id: Uuid, config: LogConfig
    ) -> PartitionLog:
        """An empty log on its way to take the place of the partition's in another directory. It is
        not one of this directory's logs before `adopt`."""
        name = format_partition(PartitionName(topic, partition, PartitionState.FUTURE))
        return self._open(os.path.join(self.path, name), topic, Stopped(), topic_id, config)

    def adopt(self, future: PartitionLog) -> None:
        """A log that `create_future` made is the partition's from now on."""
        if (future.topic, future.partition) in self._moved_away:
            self.checkpoint()
        name = format_partition(PartitionName(future.topic, future.partition))
        future.rename(os.path.join(self.path, name))
        self._logs[future.topic, future.partition] = future

    def discard(self, future: PartitionLog) -> None:
        """A log that `create_future` made is not wanted any more."""
        state = PartitionState.DELETED
        name = format_partition(PartitionName(future.topic, future.partition, state))
        away = os.path.join(self.path, name)
        future.move(away)
        self._removals.add(away, self._clock())

    def take_futures(self) -> list[tuple[str, int]]:
        """The partitions that were on their way here when the directory was last used. What there
        is of them goes: who moves one begins anew, since the log itself may have lost its end."""
        found = []
        for path in tuple(self.left_alone):
            name = parse_partition(os.path.basename(path))
            if name is not None and name.state is PartitionState.FUTURE:
                self.left_alone.remove(path)
                self._removals.add(path, self._clock())
                found.append((name.topic, name.partition))
        return found

    def delete(self, topic: str, partition: int) -> bool:
        """Delete a partition: its directory is renamed now and removed after a while."""
        return self._move_away(topic, partition, PartitionState.DELETED)

    def set_aside(self, topic: str, partition: int) -> bool:
        """A partition that no one assigned to this directory keeps its files under another name."""
        return self._move_away(topic, partition, PartitionState.STRAY)

    def checkpoint(self) -> None:
        """Write recovery points, log start offsets and high watermarks. In any thread."""
        moved_away = set(self._moved_away)
        self.checkpoint_recovery_points()
        self.checkpoint_start_offsets()
        self.checkpoint_high_watermarks()
        self._moved_away -= moved_away

    def checkpoint_recovery_points(self) -> None:
        self._write(RECOVERY_POINTS, lambda log: log.recovery_point)

    def checkpoint_start_offsets(self) -> None:
        """Only those that no segment's name tells."""
        self._write(
            LOG_START_OFFSETS,
            lambda log: log.start_offset,
            lambda log: log.start_offset > log.segments[0].base_offset,
        )

    def checkpoint_high_watermarks(self) -> None:
        self._write(HIGH_WATERMARKS, lambda log: log.high_watermark)

    def flush_due(self) -> int:
        """Flush the logs whose flush.ms has passed; how many. In any thread."""
        now = self._clock()
        due = [log for log in self if log.flush_due(now)]
        for log in due:
            with contextlib.suppress(LogClosed):  # deleted meanwhile
                log.flush()
        return len(due)

    def delete_old(self) -> int:
        """Delete segments by each log's retention, and remove what was deleted long enough ago;
        how many segments. In any thread."""
        count = 0
        for log in self:
            if log.config.compact and self.has_cleaner:
                continue
            with contextlib.suppress(LogClosed):  # deleted meanwhile
                count += log.delete_old_segments()
        self.remove_deleted()
        return count

    def remove_deleted(self) -> None:
        """Remove files and directories whose delay has passed. In any thread."""
        self._removals.remove_due(self._clock())

    def keep_producers(self, expiration_ms: int) -> None:
        """Forget producers that were silent for so long, from now on."""
        self._producer_expiration_ms = expiration_ms
        for log in self:
            log.producers.expiration_ms = expiration_ms

    def expire_producers(self) -> None:
        for log in self:
            log.expire_producers()

    def close(self, broker_epoch: int = -1, *, threads: int = 16) -> None:
        """A clean stop, with the marker that says so. Where the disk fails there is none, and the
        next start checks what was not flushed.

        Threads wait for flushes here, which a file system does together where it can: 10,000 logs
        took 19 s with two of them and 2 s with 16.
        """
        try:
            if self.disk.failure is None:
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(PartitionLog.close, self))
                self.checkpoint()
                marker = CleanShutdown(broker_epoch)
                with self._doing("writing the marker of a clean stop"):
                    write_clean_shutdown(os.path.join(self.path, clean_shutdown.NAME), marker)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the directory as it is."""
        for log in self:
            log.release()
        self._logs.clear()
        if self._own_lock is not None:
            self._own_lock.release()
            self._own_lock = None

    def _load(self, threads: int) -> None:
        there = read_log_directory(self.path)
        self.notes += [f"{oddity.path}: {oddity.reason}" for oddity in there.oddities]
        self._take_marker(there)
        recovery_points = _by_partition(there.recovery_points)
        starts = _by_partition(there.log_start_offsets)
        watermarks = _by_partition(there.high_watermarks)

        def load(place: PartitionPlace) -> PartitionLog:
            key = (place.name.topic, place.name.partition)
            stopped = Stopped(self.was_clean, recovery_points.get(key, 0), starts.get(key, 0))
            log = self._open(place.path, place.name.topic, stopped)
            log.update_high_watermark(watermarks.get(key, 0))
            return log

        with ThreadPoolExecutor(threads) as pool:
            for log in pool.map(load, self._sorted_out(there)):
                self._logs[log.topic, log.partition] = log
                self.notes += log.opening.lines()
        self._moved_away = {*recovery_points, *starts, *watermarks}.difference(self._logs)

    def _take_marker(self, there: LogDirectory) -> None:
        """The marker goes before anything is opened: a crash from now on is a crash."""
        path = os.path.join(self.path, clean_shutdown.NAME)
        self.was_clean = os.path.exists(path)
        if there.clean_shutdown is not None:
            self.previous_broker_epoch = there.clean_shutdown.broker_epoch
        with (
            self._doing("removing the marker of a clean stop"),
            contextlib.suppress(FileNotFoundError),
        ):
            os.unlink(path)

    def _sorted_out(self, there: LogDirectory) -> list[PartitionPlace]:
        """The partitions to open; what is on its way out goes on its way."""
        found = []
        for place in there.partitions:
            match place.name.state:
                case PartitionState.NORMAL if place.name.topic != METADATA_TOPIC:
                    found.append(place)
                case PartitionState.DELETED:
                    delay = self._config_of(place.name.topic).file_delete_delay_ms
                    self._removals.add(place.path, self._clock() + delay)
                case PartitionState.FUTURE | PartitionState.STRAY:
                    self.left_alone.append(place.path)
        return found

    def _open(
        self,
        path: str,
        topic: str,
        stopped: Stopped,
        topic_id: Uuid | None = None,
        config: LogConfig | None = None,
    ) -> PartitionLog:
        return PartitionLog.open(
            path,
            self._config_of(topic) if config is None else config,
            stopped=stopped,
            topic_id=topic_id,
            disk=self.disk,
            removals=self._removals,
            recent=self._recent,
            clock=self._clock,
            producer_expiration_ms=self._producer_expiration_ms,
        )

    def _move_away(self, topic: str, partition: int, state: PartitionState) -> bool:
        log = self._logs.pop((topic, partition), None)
        if log is None:
            return False
        away = os.path.join(self.path, format_partition(PartitionName(topic, partition, state)))
        log.move(away)
        if state is PartitionState.DELETED:
            self._removals.add(away, self._clock() + log.config.file_delete_delay_ms)
        else:
            self.left_alone.append(away)
        self._moved_away.add((topic, partition))
        return True

    def _write(
        self,
        name: str,
        offset: Callable[[PartitionLog], int],
        wanted: Callable[[PartitionLog], bool] = lambda log: True,
    ) -> None:
        logs = sorted(filter(wanted, self), key=lambda log: (log.topic, log.partition))
        entries = [PartitionOffset(log.topic, log.partition, offset(log)) for log in logs]
        # One at a time: each writes aside under the same name.
        with self._checkpointing, self._doing("writing checkpoints"):
            write_if_other(os.path.join(self.path, name), format_offset_checkpoint(entries))

    @contextlib.contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        try:
            with self.disk.doing(what):
                yield
        except NotKafka as error:
            if isinstance(error.__cause__, OSError):
                raise self.disk.failed(error.__cause__, what) from error
            raise


def _by_partition(entries: Iterable[PartitionOffset]) -> dict[tuple[str, int], int]:
    return {(entry.topic, entry.partition): entry.offset for entry in entries}
