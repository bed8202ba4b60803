"""Who cleans: the state that all cleaner threads share, and what one of them does in a round.

A round cleans the filthiest log that is due, then lets retention have the compacted logs that
nobody cleans. A log that cannot be read is set aside, with a line that says why, and the others go
on; a log that is deleted meanwhile is forgotten.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from kraftline.errors import BadData, KraftlineError, NotKafka
from kraftline.storage.checkpoints import (
    CLEANER_OFFSETS,
    PartitionOffset,
    format_offset_checkpoint,
    read_offset_checkpoint,
)
from kraftline.storage.cleaner.choosing import Dirt, dirt_of
from kraftline.storage.cleaner.problems import CleaningAborted
from kraftline.storage.cleaner.throttle import Throttle
from kraftline.storage.files import write_if_other
from kraftline.storage.log.logs import Logs
from kraftline.storage.log.partition_log import PartitionLog, wall_clock
from kraftline.storage.log.problems import LogClosed, StorageFailed

if TYPE_CHECKING:
    from kraftline.storage.cleaner.statistics import CleaningStatistics

_logger = logging.getLogger(__name__)
_LARGEST_MAP: Final = 2**31 - 1


class CleanerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Kafka's, by the names of `log.cleaner.*`; memory is that of all threads together."""

    threads: int = 1
    dedupe_buffer_size: int = 128 * 1024 * 1024
    dedupe_buffer_load_factor: float = 0.9
    io_buffer_size: int = 512 * 1024
    io_max_bytes_per_second: float = 1.7976931348623157e308
    backoff_ms: int = 15_000

    @property
    def map_memory(self) -> int:
        """A thread's share."""
        return min(self.dedupe_buffer_size // max(self.threads, 1), _LARGEST_MAP)

    @property
    def chunk(self) -> int:
        return self.io_buffer_size // max(self.threads, 1) // 2


class Cleaner:
    """Of all log directories of a broker. Any thread may call anything here.

    `uncleanable` says for each log that was set aside why. The other numbers are for metrics:
    `last` has the statistics of the last cleaning of each thread, `dirtiest` is the ratio of the
    dirtiest log as of the last round, `delay_ms` how far it was behind max.compaction.lag.ms.
    """

    def __init__(
        self,
        directories: tuple[Logs, ...],
        settings: CleanerSettings,
        *,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.settings = settings
        self.throttle = Throttle(settings.io_max_bytes_per_second)
        self.uncleanable: dict[PartitionLog, str] = {}
        self.last: dict[str, CleaningStatistics] = {}
        self.dirtiest = 0.0
        self.delay_ms = 0
        self.last_round = clock()
        self._clock = clock
        self._directories = directories
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._busy: set[PartitionLog] = set()
        # Where each log's dirty part begins. By log and not by name: another log may get the name.
        self._first_dirty: dict[PartitionLog, int] = {}
        for logs in directories:
            logs.has_cleaner = True
            self._read_checkpoint(logs)

    def reconfigure(self, settings: CleanerSettings) -> None:
        self.settings = settings
        self.throttle.bytes_per_second = settings.io_max_bytes_per_second

    def first_dirty_offset(self, log: PartitionLog) -> int | None:
        """Up to where a log has been cleaned; None where it never was."""
        return self._first_dirty.get(log)

    def uncleanable_bytes(self, logs: Logs) -> int:
        """How many bytes of a directory would be cleaned if they could be."""
        now, found = self._clock(), 0
        for log in tuple(self.uncleanable):
            if log.disk is logs.disk and not log.is_closed:
                with contextlib.suppress(OSError, KraftlineError):  # it is there for a reason
                    found += dirt_of(log, self._first_dirty.get(log), now).dirty_bytes
        return found

    def run_round(self, stop: threading.Event, thread: str = "") -> bool:
        """Clean one log, if one is due; whether one was. Nothing that a log has wrong is raised."""
        work = self._take()
        if work is not None:
            log, dirt = work
            try:
                self._clean(log, dirt, stop, thread)
            finally:
                with self._lock:
                    self._busy.discard(log)
        self._delete_old(stop)
        self._forget_deleted()
        return work is not None

    # Choosing

    def _take(self) -> tuple[PartitionLog, Dirt] | None:
        """The filthiest log that is due, which nobody else gets until it is done."""
        with self._lock:
            now = self.last_round = self._clock()
            delay, dirtiest = 0, 0.0
            found: tuple[PartitionLog, Dirt] | None = None
            for log in self._compacted():
                dirt = self._dirt(log, now)
                if dirt is None:
                    continue
                delay = max(delay, dirt.delay_ms)
                if dirt.is_empty:
                    continue
                dirtiest = max(dirtiest, dirt.ratio)
                is_due = dirt.is_due(log.config.min_cleanable_dirty_ratio)
                if is_due and (found is None or dirt.ratio > found[1].ratio):
                    found = log, dirt
            self.dirtiest, self.delay_ms = dirtiest, delay
            if found is not None:
                self._busy.add(found[0])
            return found

    def _compacted(self) -> Iterator[PartitionLog]:
        """Logs that may be cleaned now."""
        for logs in self._directories:
            if logs.disk.failure is None:
                for log in logs:
                    if (
                        log.config.compact
                        and not log.is_closed
                        and log not in self._busy
                        and log not in self.uncleanable
                    ):
                        yield log

    def _dirt(self, log: PartitionLog, now: int) -> Dirt | None:
        try:
            dirt = dirt_of(log, self._first_dirty.get(log), now)
        except FileNotFoundError:
            return None  # deleted meanwhile, or about to be seen to be
        except (BadData, NotKafka, OSError) as problem:
            self._set_aside(log, problem)
            return None
        if dirt.is_checkpoint_bad:
            if dirt.note is not None:
                _logger.warning("%s", dirt.note)
            self._first_dirty[log] = dirt.first_dirty
        return dirt

    # Cleaning

    def _clean(self, log: PartitionLog, dirt: Dirt, stop: threading.Event, thread: str) -> None:
        # Not before there is something to clean: a node has to be up quickly.
        from kraftline.storage.cleaner.cleaning import Cleaning
        from kraftline.storage.cleaner.offset_map import OffsetMap

        def pace(size: int) -> None:
            wait = self.throttle.did(size) if size else 0.0
            if stop.wait(wait) if wait > 0 else stop.is_set():
                raise CleaningAborted("the cleaner stops")

        settings = self.settings
        offset_map = OffsetMap(settings.map_memory, settings.dedupe_buffer_load_factor)
        cleaning = Cleaning(log, dirt, offset_map, self._clock(), chunk=settings.chunk, pace=pace)
        try:
            cleaned = cleaning.run()
        except CleaningAborted as problem:
            _logger.debug("%s", problem)
            return
        except LogClosed:
            return
        except StorageFailed as problem:
            _logger.error("%s", problem)
            stop.wait(1.0)  # a full disk: not again at once
            return
        except Exception as problem:
            if not isinstance(problem, KraftlineError):
                _logger.exception("cleaning %s failed", log.name)
            with self._lock:
                self._set_aside(log, problem)
            return
        with self._lock:
            self.last[thread] = cleaned.statistics
            self._first_dirty[log] = cleaned.end
        self._write_checkpoints(log)
        _logger.info("%s", cleaned.statistics.words(log.name, dirt.first_dirty, cleaned.end))

    def _set_aside(self, log: PartitionLog, problem: Exception) -> None:
        """The lock is held."""
        _logger.warning(
            "%s is not compacted any more until the broker is started again: %s", log.name, problem
        )
        self.uncleanable[log] = str(problem)

    def _delete_old(self, stop: threading.Event) -> None:
        """Retention of compacted logs: whole segments before their start, and by time and size
        where they delete too. Never of one that is being cleaned."""
        with self._lock:
            logs = list(self._compacted())
        for log in logs:
            with self._lock:
                if log in self._busy:
                    continue
                self._busy.add(log)
            try:
                if not stop.is_set():
                    log.delete_old_segments()
            except LogClosed:
                continue
            except StorageFailed as problem:
                _logger.error("%s", problem)
            finally:
                with self._lock:
                    self._busy.discard(log)

    def _forget_deleted(self) -> None:
        with self._lock:
            for log in [each for each in self.uncleanable if each.is_closed]:
                del self.uncleanable[log]
            gone = [each for each in self._first_dirty if each.is_closed]
            for log in gone:
                del self._first_dirty[log]
        for log in gone:
            self._write_checkpoints(log)

    # Checkpoints

    def _read_checkpoint(self, logs: Logs) -> None:
        path = os.path.join(logs.path, CLEANER_OFFSETS)
        try:
            entries = read_offset_checkpoint(path)
        except FileNotFoundError:
            return
        except (BadData, NotKafka) as problem:
            if os.path.exists(path):
                _logger.warning("%s; every log is cleaned from its start on", problem)
            return
        for entry in entries:
            log = logs.get(entry.topic, entry.partition)
            if log is not None:
                self._first_dirty[log] = entry.offset

    def _write_checkpoints(self, log: PartitionLog) -> None:
        """Of the directory that a log is in."""
        with self._writing:
            for logs in self._directories:
                if logs.disk is log.disk and logs.disk.failure is None:
                    self._write_checkpoint(logs)

    def _write_checkpoint(self, logs: Logs) -> None:
        with self._lock:
            entries = [
                PartitionOffset(each.topic, each.partition, offset)
                for each, offset in self._first_dirty.items()
                if each.disk is logs.disk and not each.is_closed
            ]
        entries.sort(key=lambda entry: (entry.topic, entry.partition))
        path = os.path.join(logs.path, CLEANER_OFFSETS)
        try:
            write_if_other(path, format_offset_checkpoint(entries))
        except (OSError, NotKafka) as problem:
            _logger.error("%s: %s; it is tried again after the next cleaning", path, problem)


def run_thread(cleaner: Cleaner, stop: threading.Event, name: str) -> None:
    """What a cleaner thread does until it is told to stop."""
    while not stop.is_set():
        try:
            was_due = cleaner.run_round(stop, name)
        except Exception:
            _logger.exception("a round of the cleaner failed")
            was_due = False
        if not was_due:
            stop.wait(max(cleaner.settings.backoff_ms, 1) / 1000)
