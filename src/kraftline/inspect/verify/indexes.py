"""Indexes against the log they belong to, fed by the walk of the log: no second reading.

Indexes are read before the log is: Kafka appends to the log first, so that whatever a live index
names must be in the log by then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.verify.batches import Rows, Walked
from kraftline.inspect.verify.findings import REBUILD, Report
from kraftline.records.runs import Run
from kraftline.storage import offset_index, time_index
from kraftline.storage.files import vanished
from kraftline.storage.offset_index import OffsetIndex, read_offset_index
from kraftline.storage.time_index import TimeIndex, read_time_index

_REBUILT = "The broker was not stopped cleanly: Kafka builds this index anew when it starts."
_NOT_NEWEST = (
    "Kafka takes the last entry for the newest time of the segment (with none, the time of the "
    "file): lookups by time pass its younger records over, and retention deletes them by the "
    f"wrong time. {REBUILD}"
)


class IndexPlace(msgspec.Struct, frozen=True):
    """An index file, and what is allowed there. `rebuilt`: Kafka will make it anew anyway;
    `may_be_preallocated`: a tail of zeros is what a running or killed broker leaves."""

    file: str
    rebuilt: bool = False
    may_be_preallocated: bool = True

    @property
    def meaning(self) -> str | None:
        return _REBUILT if self.rebuilt else None


class OffsetIndexCheck:
    """Each entry names the start of a batch, and an offset that fits it."""

    def __init__(self, place: IndexPlace, index: OffsetIndex, report: Report) -> None:
        self.place = place
        self.index = index
        self.report = report
        self.slot = 0

    def rows(self, rows: Rows) -> None:
        index, count = self.index, len(rows.positions)
        if not count:
            return
        end = rows.positions[-1] + rows.sizes[-1]
        # What lies before these rows and was not met is in a damaged part, told already.
        self.slot = max(self.slot, bisect_left(index.positions, rows.positions[0]))
        while self.slot < len(index) and index.positions[self.slot] < end:
            position = index.positions[self.slot]
            n = bisect_left(rows.positions, position)
            if n == count or rows.positions[n] != position:
                self._bad("index-position", f"no batch begins at position {position}")
            elif position not in rows.untrusted:
                self._compare(rows.base_offsets[n])
            self.slot += 1

    def _compare(self, base_offset: int) -> None:
        """Kafka writes the last offset of what it appended there, perhaps several batches."""
        index, slot = self.index, self.slot
        offset = index.base_offset + index.relative_offsets[slot]
        if offset < base_offset:
            self._bad(
                "index-offset",
                f"offset {offset}, but the batch at position {index.positions[slot]} begins "
                f"with {base_offset}",
            )
        elif slot and index.base_offset + index.relative_offsets[slot - 1] >= base_offset:
            before = index.base_offset + index.relative_offsets[slot - 1]
            self._bad(
                "index-offset",
                f"the entry before has offset {before}, which is not below the {base_offset} of "
                f"the batch at position {index.positions[slot]}",
            )

    def records(self, run: Run) -> None:
        """Headers are enough."""

    def finish(self, walked: Walked) -> None:
        index, left = self.index, len(self.index) - self.slot
        if left:
            self._bad(
                "index-past-end",
                f"{left} {'entry points' if left == 1 else 'entries point'} past the log's "
                f"{walked.end} bytes, the first to position {index.positions[self.slot]}",
            )
        elif len(index) and walked.next_offset is not None:
            offset = index.base_offset + index.relative_offsets[-1]
            if offset >= walked.next_offset:
                self.slot = len(index) - 1
                self._bad(
                    "index-offset",
                    f"offset {offset} is not in the log, which ends before {walked.next_offset}",
                )

    def _bad(self, code: str, problem: str) -> None:
        self.report.add(
            code,
            self.place.file,
            f"entry {self.slot}: {problem}",
            position=self.slot * offset_index.ENTRY,
            offset=self.index.base_offset + self.index.relative_offsets[self.slot],
            meaning=self.place.meaning,
        )


class TimeIndexCheck:
    """Each entry has the newest time so far, and an offset of the batch that has it; the last
    entry of a segment that was closed has the newest of all."""

    def __init__(self, place: IndexPlace, index: TimeIndex, report: Report) -> None:
        self.place = place
        self.index = index
        self.report = report
        self.slot = 0
        self.newest = -1
        self.sound = True

    def rows(self, rows: Rows) -> None:
        rows = rows.trusted()
        index, done = self.index, 0
        if not rows.positions:
            return
        while self.slot < len(index):
            offset = index.base_offset + index.relative_offsets[self.slot]
            if offset > rows.last_offsets[-1]:
                break
            n = bisect_right(rows.base_offsets, offset) - 1
            if n < 0 or offset > rows.last_offsets[n]:
                self._bad("timeindex-offset", f"no batch holds offset {offset}")
            else:
                if done <= n:
                    self.newest = max(self.newest, *rows.max_timestamps[done : n + 1])
                    done = n + 1
                # 0.10 noted the time of a message that it then stored in format v0, without it.
                if rows.magics[n] > 0:
                    self._compare(rows.max_timestamps[n])
            self.slot += 1
        if done < len(rows.positions):
            self.newest = max(self.newest, *rows.max_timestamps[done:])

    def _compare(self, timestamp: int) -> None:
        named = self.index.timestamps[self.slot]
        if named != timestamp:
            self._bad(
                "timeindex-timestamp",
                f"time {named}, but the batch with that offset has {timestamp}",
            )
        elif self.newest > named:
            self._bad(
                "timeindex-timestamp",
                f"time {named} is not the newest so far: a batch before has {self.newest}",
            )

    def records(self, run: Run) -> None:
        """Headers are enough."""

    def finish(self, walked: Walked) -> None:
        left = len(self.index) - self.slot
        if left:
            self._bad(
                "index-past-end",
                f"{left} {'entry names' if left == 1 else 'entries name'} offsets past the end of "
                f"the log{'' if walked.next_offset is None else f' at {walked.next_offset}'}",
            )
        elif self.sound and not self.place.may_be_preallocated:
            self._complete()

    def _complete(self) -> None:
        """Kafka adds an entry when it closes a segment, unless the last one has that time."""
        times = self.index.timestamps
        if self.newest <= (times[-1] if times else time_index.NO_TIMESTAMP):
            return
        ends = f"the last entry has time {times[-1]}" if times else "there is no entry"
        self.report.add(
            "timeindex-timestamp",
            self.place.file,
            f"{ends}, but the segment was closed and its newest time is {self.newest}",
            position=len(times) * time_index.ENTRY,
            meaning=_NOT_NEWEST,
        )

    def _bad(self, code: str, problem: str) -> None:
        self.sound = False
        self.report.add(
            code,
            self.place.file,
            f"entry {self.slot}: {problem}",
            position=self.slot * time_index.ENTRY,
            offset=self.index.base_offset + self.index.relative_offsets[self.slot],
            meaning=self.place.meaning,
        )


def open_offset_index(place: IndexPlace, report: Report) -> OffsetIndexCheck | None:
    """Read an index and judge what needs no log; None where it cannot be read."""
    try:
        index = read_offset_index(place.file)
    except (BadData, NotKafka) as error:
        refuse_index(error, place, report)
        return None
    _count(place, len(index) * offset_index.ENTRY, index.zero_tail, report)
    return OffsetIndexCheck(place, index, report)


def open_time_index(place: IndexPlace, report: Report) -> TimeIndexCheck | None:
    try:
        index = read_time_index(place.file)
    except (BadData, NotKafka) as error:
        refuse_index(error, place, report)
        return None
    _count(place, len(index) * time_index.ENTRY, index.zero_tail, report)
    return TimeIndexCheck(place, index, report)


def refuse_index(error: BadData | NotKafka, place: IndexPlace, report: Report) -> None:
    """Tell why an index cannot be read, unless it just vanished."""
    if isinstance(error, NotKafka):
        if not vanished(error):
            report.add("unreadable", place.file, str(error).removeprefix(f"{place.file}: "))
        return
    code = "index-size" if "not a multiple" in error.reason else "index-order"
    report.add(code, place.file, error.reason, position=error.position, meaning=place.meaning)


def _count(place: IndexPlace, size: int, zero_tail: int, report: Report) -> None:
    report.read_file(size)
    if zero_tail and not place.may_be_preallocated:
        report.add(
            "index-tail",
            place.file,
            f"{zero_tail:,} bytes of zeros follow the entries",
            position=size,
            meaning=f"Kafka takes the zeros for entries unless it rebuilds the index. {REBUILD}",
        )
