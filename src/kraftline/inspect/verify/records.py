"""Records inside batches: order, times, control records, and payloads that Kafka itself reads."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import pairwise
from operator import lt
from typing import TypeAlias

from kraftline.inspect.verify.batches import Rows
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.payloads import PayloadCheck, Wrong, check_control
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Run
from kraftline.schema.types import Message

_APPEND_TIME = 0x08
_CONTROL = 0x20
# Places of so many records are kept at a time: 64 bytes each.
_CHUNK = 128 * 1024
# A batch of more records than this can only be a trap; Kafka's limits are far below.
_MOST = 2 * 1024 * 1024

# Offset, producer id, type, value.
OnControl: TypeAlias = Callable[[int, int, int, Message | None], None]


class RecordCheck:
    """Looks at every record of a file. `typed` decodes keys and values; `one_time` wants all
    records of a batch at its base timestamp, as in the metadata log."""

    def __init__(
        self,
        file: str,
        report: Report,
        *,
        typed: PayloadCheck | None = None,
        one_time: bool = False,
        on_control: OnControl | None = None,
    ) -> None:
        self.file = file
        self.report = report
        self.typed = typed
        self.one_time = one_time
        self.on_control = on_control

    def rows(self, rows: Rows) -> None:
        """Records only."""

    def records(self, run: Run) -> None:
        gaps = run.totals[kernel.NOT_CONSECUTIVE] > 0
        counts = run.table[kernel.COUNT :: kernel.STRIDE]
        for source, first, last in run.groups:
            start = first
            while start < last:
                stop, total = start, 0
                while stop < last and (stop == start or total + counts[stop] <= _CHUNK):
                    total += counts[stop]
                    stop += 1
                if total > _MOST:
                    self._too_many(run, start, total)
                else:
                    self._chunk(run, source, start, stop, total, gaps)
                start = stop

    def _too_many(self, run: Run, row: int, count: int) -> None:
        position = run.table[row * kernel.STRIDE + kernel.POSITION]
        self.report.add(
            "batch-too-large",
            self.file,
            f"a batch of {count:,} records: they were not looked at one by one",
            position=position,
            # Records that Kafka itself reads have to be read here too.
            note=self.typed is None,
        )

    def _chunk(
        self, run: Run, source: memoryview, first: int, last: int, total: int, gaps: bool
    ) -> None:
        stride = kernel.P_STRIDE
        places = array("q", bytes(8 * stride * total))
        kernel.positions(source, run.table, first, last, places)
        times = places[kernel.P_TIMESTAMP :: stride]
        counts = _column(run, kernel.COUNT, first, last)
        attributes = _column(run, kernel.ATTRIBUTES, first, last)
        newest = _column(run, kernel.MAX_TIMESTAMP, first, last)
        kinds = 0
        for bits in set(attributes):
            kinds |= bits
        # Batches of one record, the smallest there are, need no look at each.
        if not (total == len(counts) == counts.count(1) and times == newest):
            self._newest(run, first, times, counts, attributes, newest)
        if gaps or self.one_time or self.typed is not None or kinds & _CONTROL:
            self._each_batch(run, source, places, first, last, gaps)

    def _newest(
        self,
        run: Run,
        first: int,
        times: array[int],
        counts: array[int],
        attributes: array[int],
        newest: array[int],
    ) -> None:
        """The newest record of each batch has the time in its header."""
        at = 0
        for row, (count, bits, header) in enumerate(zip(counts, attributes, newest, strict=True)):
            stop = at + count
            if count and not bits & _APPEND_TIME and max(times[at:stop]) != header:
                t = (first + row) * kernel.STRIDE
                self.report.add(
                    "batch-max-timestamp",
                    self.file,
                    f"the header says {header}, the newest record has {max(times[at:stop])}",
                    position=run.table[t + kernel.POSITION],
                    offset=run.table[t + kernel.BASE_OFFSET],
                )
            at = stop

    def _each_batch(
        self,
        run: Run,
        source: memoryview,
        places: array[int],
        first: int,
        last: int,
        gaps: bool,
    ) -> None:
        table, at = run.table, 0
        times = places[kernel.P_TIMESTAMP :: kernel.P_STRIDE]
        offsets = places[kernel.P_OFFSET :: kernel.P_STRIDE]
        for row in range(first, last):
            t = row * kernel.STRIDE
            count, position = table[t + kernel.COUNT], table[t + kernel.POSITION]
            stop = at + count
            if gaps and not all(map(lt, offsets[at : stop - 1], offsets[at + 1 : stop])):
                self._disorder(offsets[at:stop], position)
            if self.one_time:
                base = table[t + kernel.BASE_TIMESTAMP]
                if times[at:stop].count(base) != count:
                    self._own_times(times[at:stop], offsets[at:stop], base, position)
            if table[t + kernel.ATTRIBUTES] & _CONTROL:
                self._control(source, places, at, stop, t, table)
            elif self.typed is not None:
                self._payloads(source, places, at, stop, position)
            at = stop

    def _disorder(self, offsets: array[int], position: int) -> None:
        for n, (before, after) in enumerate(pairwise(offsets), 1):
            if after <= before:
                self.report.add(
                    "record-order",
                    self.file,
                    f"record {n} of the batch has offset {after} after {before}",
                    position=position,
                    offset=after,
                    record=n,
                )
                return

    def _own_times(self, times: array[int], offsets: array[int], base: int, position: int) -> None:
        n = next(n for n, time in enumerate(times) if time != base)
        self.report.add(
            "batch-timestamp-delta",
            self.file,
            f"record {n} of the batch has a time of its own, {times[n] - base:+d} ms from the "
            "batch's",
            position=position,
            offset=offsets[n],
            record=n,
        )

    def _control(
        self,
        source: memoryview,
        places: array[int],
        first: int,
        last: int,
        t: int,
        table: array[int],
    ) -> None:
        for n in range(first, last):
            offset, key, value = _record(source, places, n)
            kind, message, wrong = check_control(key, value)
            if wrong is not None:
                self.report.add(
                    wrong.code,
                    self.file,
                    wrong.problem,
                    position=table[t + kernel.POSITION],
                    offset=offset,
                    record=n - first,
                    data=wrong.data,
                )
            elif message is None:
                self.report.note(
                    "control-record",
                    self.file,
                    f"control record type {kind} at offset {offset} is not known; "
                    "consumers pass it over",
                    position=table[t + kernel.POSITION],
                )
            if kind is not None and self.on_control is not None:
                self.on_control(offset, table[t + kernel.PRODUCER_ID], kind, message)

    def _payloads(
        self, source: memoryview, places: array[int], first: int, last: int, position: int
    ) -> None:
        assert self.typed is not None
        for n in range(first, last):
            offset, key, value = _record(source, places, n)
            wrong = self.typed(key, value)
            headers = places[n * kernel.P_STRIDE + kernel.P_HEADERS]
            if wrong is None and self.one_time and source[headers] != 0:
                wrong = Wrong("record-value", "a metadata record with headers", value or b"")
            if wrong is not None:
                self.report.add(
                    wrong.code,
                    self.file,
                    wrong.problem,
                    position=position,
                    offset=offset,
                    record=n - first,
                    data=wrong.data,
                    meaning=wrong.meaning,
                )


def _column(run: Run, column: int, first: int, last: int) -> array[int]:
    stride = kernel.STRIDE
    return run.table[first * stride + column : last * stride : stride]


def _record(
    source: memoryview, places: array[int], n: int
) -> tuple[int, bytes | None, bytes | None]:
    """Offset, key and value of the record `n`."""
    p = n * kernel.P_STRIDE
    key_end, value_end = places[p + kernel.P_KEY_END], places[p + kernel.P_VALUE_END]
    return (
        places[p + kernel.P_OFFSET],
        None if key_end < 0 else bytes(source[places[p + kernel.P_KEY] : key_end]),
        None if value_end < 0 else bytes(source[places[p + kernel.P_VALUE] : value_end]),
    )
