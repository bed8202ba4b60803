"""Cleaning one log: keys of its dirty part into a map, then all its closed segments up to there
written again, group by group, without the records that the map knows later ones of.

Segments are grouped so that what comes of a group is no larger than a segment may be. Each group is
swapped in as soon as it is written and flushed; an interrupted cleaning begins again with what
there is.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kraftline.storage.cleaner.choosing import Dirt, segments_between
from kraftline.storage.cleaner.filtering import Filtering, Rules, wanted_keys
from kraftline.storage.cleaner.offset_map import OffsetMap
from kraftline.storage.cleaner.problems import CleaningAborted
from kraftline.storage.cleaner.reading import Stretch, stretches
from kraftline.storage.cleaner.statistics import CleaningStatistics
from kraftline.storage.cleaner.transactions import Transactions
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.log.partition_log import PartitionLog
from kraftline.storage.log.segment import SEGMENT_KINDS, Segment
from kraftline.storage.names import MAX_INT, FileKind, Working
from kraftline.storage.offset_index import ENTRY as OFFSET_ENTRY
from kraftline.storage.offset_index import encode_offset_index, lookup
from kraftline.storage.time_index import ENTRY as TIME_ENTRY
from kraftline.storage.time_index import encode_time_index
from kraftline.storage.txn_index import format_txn_index

# A read costs some work beside its bytes, so it is not made smaller than this.
_LEAST_CHUNK: Final = 1024 * 1024

# Called between steps with the bytes that were read or written: waits where a rate is to be kept,
# and raises CleaningAborted where the work is to stop.
Pace = Callable[[int], None]


def no_limit(size: int) -> None:
    """As fast as it goes, to the end."""


class Cleaned(msgspec.Struct, frozen=True):
    """The log is clean below `end`."""

    end: int
    statistics: CleaningStatistics


class Cleaning:
    """One log's, once. `chunk` is how many bytes are read at a time."""

    def __init__(
        self,
        log: PartitionLog,
        dirt: Dirt,
        offset_map: OffsetMap,
        now: int,
        *,
        chunk: int = _LEAST_CHUNK,
        pace: Pace = no_limit,
    ) -> None:
        self._log = log
        self._directory = log.directory
        self._dirt = dirt
        self._map = offset_map
        self._now = now
        self._chunk = max(chunk, _LEAST_CHUNK)
        self._pace = pace
        # Segments that this is about and that are not replaced yet.
        self._left: tuple[Segment, ...] = ()
        self._statistics = CleaningStatistics(time.monotonic())

    def run(self) -> Cleaned:
        """CleaningAborted where the log went away meanwhile, BadData where it cannot be read."""
        log = self._log
        with log.disk.doing(f"cleaning {log.name}"):
            try:
                return self._run()
            except FileNotFoundError:
                if log.has(self._left) and log.directory == self._directory:
                    raise
                raise CleaningAborted(f"{log.name} went away while it was cleaned") from None
            finally:
                self._map.release()

    def _run(self) -> Cleaned:
        log, dirt, statistics = self._log, self._dirt, self._statistics
        segments = log.segments
        self._left = segments_between(segments, 0, dirt.end)
        clean = segments_between(segments, 0, dirt.first_dirty)
        old_horizon = _modified(clean[-1]) - log.config.delete_retention_ms if clean else 0
        self._map.clear()
        self._note_keys(segments_between(segments, dirt.first_dirty, dirt.end))
        end = self._map.latest + 1
        statistics.map_ended = time.monotonic()
        statistics.map_utilization = self._map.utilization
        transactions = Transactions()
        for group in self._groups(segments_between(segments, 0, end)):
            self._clean(group, transactions, old_horizon)
            self._left = self._left[len(group) :]
        statistics.ended = time.monotonic()
        return Cleaned(end, statistics)

    # The map

    def _note_keys(self, dirty: tuple[Segment, ...]) -> None:
        """All keys of the dirty part, or as many as the map has room for."""
        first, end = self._dirt.first_dirty, self._dirt.end
        transactions = Transactions()
        transactions.expect(self._log.aborted_between(first, end))
        for n, segment in enumerate(dirty):
            self._check()
            self._note_segment(segment, first, transactions)
            if self._map.is_full:
                return
            # There may be no batch at the end of a segment any more.
            following = dirty[n + 1].base_offset if n + 1 < len(dirty) else end
            self._map.latest = following - 1

    def _note_segment(self, segment: Segment, first: int, transactions: Transactions) -> None:
        statistics = self._statistics
        if segment.size == 0:
            return
        position = lookup(segment.offsets, first).position
        for stretch in self._stretches(segment, position):
            wanted = wanted_keys(stretch, transactions)
            statistics.map_bytes_read += stretch.size
            statistics.map_records_read += stretch.run.records
            for group in stretch.run.groups:
                self._map.note(stretch.run, group, wanted, first)
                if self._map.is_full:
                    return

    # The segments

    def _groups(self, segments: tuple[Segment, ...]) -> list[tuple[Segment, ...]]:
        """Neighbours that become one segment: together no larger than segments and indexes may
        be, and their offsets no further apart than an index can say."""
        config = self._log.config
        groups: list[list[Segment]] = []
        size = offsets = times = 0
        for n, segment in enumerate(segments):
            of_offsets = OFFSET_ENTRY * len(segment.offsets.positions) if segment.size else 0
            of_times = TIME_ENTRY * len(segment.times.timestamps) if segment.size else 0
            following = segments[n + 1].base_offset if n + 1 < len(segments) else self._dirt.end
            if (
                groups
                and size + segment.size <= config.segment_bytes
                and offsets + of_offsets <= config.segment_index_bytes
                and times + of_times <= config.segment_index_bytes
                and (segment.size == 0 or following - 1 - groups[-1][0].base_offset <= MAX_INT)
            ):
                groups[-1].append(segment)
            else:
                groups.append([segment])
                size = offsets = times = 0
            size += segment.size
            offsets += of_offsets
            times += of_times
        return [tuple(group) for group in groups]

    def _clean(
        self, group: tuple[Segment, ...], transactions: Transactions, old_horizon: int
    ) -> None:
        """Write a group again as one segment, and let that take its place."""
        log = self._log
        base_offset = group[0].base_offset
        new = Segment(log.directory, base_offset, created=self._now)
        file = log.begin_cleaned(base_offset)
        try:
            indexes = IndexBuilder(base_offset, log.config.index_interval_bytes)
            transactions.index = []
            filtering = Filtering(self._map, transactions, indexes, self._statistics)
            producers = log.last_of_producers()
            lasts = [
                each.last_offset for each in producers.values() if each.last_offset is not None
            ]
            for n, segment in enumerate(group):
                following = group[n + 1].base_offset if n + 1 < len(group) else _next(segment)
                transactions.expect(log.aborted_between(segment.base_offset, following))
                rules = Rules(
                    now=self._now,
                    delete_retention_ms=log.config.delete_retention_ms,
                    end=self._dirt.end,
                    keeps_old_deletes=_modified(segment) > old_horizon,
                    producers=producers,
                    lasts=array("q", sorted(lasts)),
                )
                if segment.size:
                    for stretch in self._stretches(segment, 0):
                        filtering.add(stretch, rules)
                        self._write(filtering, file)
            indexes.close()
            new.size = filtering.position
            new.adopt(file, indexes, transactions.index)
            self._write_companions(new, indexes)
            _keep_time(new, group[-1])
            self._check()
            if not log.replace(group, new):
                raise CleaningAborted(f"segments of {log.name} were deleted while it was cleaned")
        except BaseException:
            _remove_cleaned(new)
            raise

    def _write(self, filtering: Filtering, file: OpenFile) -> None:
        out = filtering.out
        if out:
            file.write(memoryview(out), filtering.position)
            filtering.position += len(out)
            self._pace(len(out))
            filtering.out = bytearray()

    def _write_companions(self, new: Segment, indexes: IndexBuilder) -> None:
        """The indexes under the names that they have until the swap; everything flushed."""
        os.fsync(new.file.fd)
        files = {
            FileKind.OFFSET_INDEX: encode_offset_index(indexes.offsets),
            FileKind.TIME_INDEX: encode_time_index(indexes.times),
        }
        aborted = new.aborted()
        if aborted:
            files[FileKind.TXN_INDEX] = format_txn_index(aborted)
        for kind, data in files.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            file = OpenFile(new.path(kind, Working.CLEANED), flags)
            file.write(data, 0)
            os.fsync(file.fd)

    # Both

    def _stretches(self, segment: Segment, position: int) -> Iterator[Stretch]:
        """Batches of a segment, at the pace that is set."""
        for stretch in stretches(segment, position, self._chunk):
            self._check()
            yield stretch
            self._pace(stretch.size)

    def _check(self) -> None:
        if self._log.is_closed:
            raise CleaningAborted(f"{self._log.name} was closed while it was cleaned")
        self._pace(0)


def _next(segment: Segment) -> int:
    return segment.next_offset() if segment.size else segment.base_offset


def _modified(segment: Segment) -> int:
    """When the file was written last, in ms; a cleaned one has the time of those before it."""
    return os.stat(segment.path()).st_mtime_ns // 1_000_000


def _keep_time(new: Segment, last: Segment) -> None:
    """The age of records counts by it where they have no times of their own."""
    modified = os.stat(last.path()).st_mtime_ns
    for kind in SEGMENT_KINDS[:3]:
        os.utime(new.path(kind, Working.CLEANED), ns=(modified, modified))


def _remove_cleaned(segment: Segment) -> None:
    for kind in SEGMENT_KINDS:
        with contextlib.suppress(OSError):
            os.unlink(segment.path(kind, Working.CLEANED))
