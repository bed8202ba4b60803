"""What stays of a run of batches, as the bytes that the cleaned segment gets.

- A batch that loses nothing is copied as it is; neighbours are copied together.
- A batch that loses records keeps its first and last offset, sequences, epoch and codec; offsets
  and timestamps of its records do not change.
- A batch that loses all goes, unless a producer's last sequence or epoch is in it, or it is the
  last of this round: then its header stays.
- A batch with tombstones, or a marker without a transaction, gets a delete horizon the first time
  it is met, and loses them when that has passed.
- Batches of v0 and v1 become such of v2. Whether their tombstones go, the age of their segment's
  file decides.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from typing import Final

import google_crc32c
import msgspec

from kraftline.records.batch import HEADER_SIZE, DefaultBatch
from kraftline.records.compression import compress
from kraftline.records.kernel import active as records_kernel
from kraftline.records.legacy import LegacyBatch
from kraftline.records.record import NO_TIMESTAMP
from kraftline.records.runs import Group, Run
from kraftline.records.write import build_batch, empty_batch
from kraftline.storage.cleaner.kernel import active as kernel
from kraftline.storage.cleaner.offset_map import OffsetMap, Verdict
from kraftline.storage.cleaner.reading import Stretch
from kraftline.storage.cleaner.statistics import CleaningStatistics
from kraftline.storage.cleaner.transactions import Transactions
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL
from kraftline.storage.log.log_cleaned import LastOfProducer

_HORIZON: Final = 0x40
_LOG_APPEND_TIME: Final = 0x08
# What becomes of a batch of which no record stays.
_GOES: Final = 0
_STAYS_EMPTY: Final = 1
_NOBODY: Final = array("q")

_front = struct.Struct(">qiib").pack_into
_crc = struct.Struct(">I").pack_into
_back = struct.Struct(">hiqqqhii").pack_into


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """By what a segment's batches are judged. `end` is the offset that this round cleans up to;
    `keeps_old_deletes` is for tombstones of v0 and v1; `producers` says where each has its last
    batch, and `lasts` are the offsets of these, rising."""

    now: int
    delete_retention_ms: int
    end: int
    keeps_old_deletes: bool
    producers: Mapping[int, LastOfProducer]
    lasts: array[int]


class Filtering:
    """Of one segment that is being written: `out` is what has not been written yet, `position` the
    place in the file where that begins."""

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: Transactions,
        indexes: IndexBuilder,
        statistics: CleaningStatistics,
    ) -> None:
        self.out = bytearray()
        self.position = 0
        self._map = offset_map
        self._transactions = transactions
        self._indexes = indexes
        self._statistics = statistics
        self._work = bytearray(64 * 1024)
        self._result = array("q", (0, 0))

    def add(self, stretch: Stretch, rules: Rules) -> None:
        """Judge a run of batches; what stays is in `out` then."""
        run = stretch.run
        verdict = Verdict(run)
        rows = len(run.table) // records_kernel.STRIDE
        how, emptied = bytearray(rows), bytearray(rows)
        marks = self._decide(stretch, rules, how, emptied)
        for group in run.groups:
            self._map.judge(run, group, how, verdict)
        for group in run.groups:
            self._emit(stretch, group, rules, verdict, emptied, marks)
        statistics = self._statistics
        statistics.bytes_read += stretch.size
        statistics.records_read += run.records
        statistics.invalid_records += sum(verdict.found[kernel.KEYLESS :: kernel.FOUND])

    def _decide(
        self, stretch: Stretch, rules: Rules, how: bytearray, emptied: bytearray
    ) -> set[int]:
        """How records of each batch are judged, and what becomes of batches that none stays of;
        the rows of markers that no batch belongs to any more."""
        table, stride = stretch.run.table, records_kernel.STRIDE
        marks: set[int] = set()
        for row in _odd(stretch.run, CONTROL | TRANSACTIONAL | _HORIZON, rules.end, rules.lasts):
            t = row * stride
            attributes = table[t + records_kernel.ATTRIBUTES]
            producer_id = table[t + records_kernel.PRODUCER_ID]
            last_offset = (
                table[t + records_kernel.BASE_OFFSET] + table[t + records_kernel.LAST_OFFSET_DELTA]
            )
            if table[t + records_kernel.MAGIC] < 2:
                how[row] = kernel.ASK if rules.keeps_old_deletes else kernel.ASK_DELETES
                emptied[row] = _STAYS_EMPTY if last_offset + 1 == rules.end else _GOES
                continue
            is_past = bool(
                attributes & _HORIZON and table[t + records_kernel.BASE_TIMESTAMP] <= rules.now
            )
            goes = False
            if attributes & CONTROL:
                is_empty = self._transactions.is_empty(_batch(stretch, t))
                if is_empty:
                    marks.add(row)
                goes = is_empty and is_past
                how[row] = kernel.NONE if goes else kernel.ALL
            else:
                if attributes & TRANSACTIONAL:
                    goes = self._transactions.is_aborted(producer_id, last_offset)
                if goes:
                    how[row] = kernel.NONE
                else:
                    how[row] = kernel.ASK_DELETES if is_past else kernel.ASK
            if last_offset + 1 == rules.end or (
                producer_id >= 0
                and _is_last(
                    rules.producers.get(producer_id),
                    last_offset,
                    table[t + records_kernel.PRODUCER_EPOCH],
                    bool(attributes & CONTROL),
                )
            ):
                emptied[row] = _STAYS_EMPTY
            elif goes:
                self._statistics.records_read -= table[t + records_kernel.COUNT]  # nobody looks
        return marks

    def _emit(
        self,
        stretch: Stretch,
        group: Group,
        rules: Rules,
        verdict: Verdict,
        emptied: bytearray,
        marks: set[int],
    ) -> None:
        table, found, statistics = stretch.run.table, verdict.found, self._statistics
        stride, width = records_kernel.STRIDE, kernel.FOUND
        memory, shift = stretch.memory, stretch.position
        rows = array("q", bytes(8 * (group.last - group.first)))
        count = kernel.staying(found, group.first, group.last, emptied, _STAYS_EMPTY, rows)
        copied_from = copied_to = 0  # what is to be copied as it is
        for row in rows[:count]:
            t, f = row * stride, row * width
            count, kept = table[t + records_kernel.COUNT], found[f + kernel.KEPT]
            start, size = table[t] - shift, table[t + records_kernel.SIZE]
            newest = table[t + records_kernel.MAX_TIMESTAMP]
            last_offset = (
                table[t + records_kernel.BASE_OFFSET] + table[t + records_kernel.LAST_OFFSET_DELTA]
            )
            is_modern = table[t + records_kernel.MAGIC] == 2
            horizon = None
            if is_modern and table[t + records_kernel.ATTRIBUTES] & _HORIZON:
                horizon = table[t + records_kernel.BASE_TIMESTAMP]
            needs_horizon = horizon is None and (found[f + kernel.TOMBSTONES] or row in marks)
            if kept == count and kept and is_modern and not needs_horizon:
                if copied_to != start:
                    self.out += memory[copied_from:copied_to]
                    copied_from = start
                copied_to = start + size
                position = self.position + len(self.out) + start - copied_from
            else:
                self.out += memory[copied_from:copied_to]
                copied_from = copied_to = 0
                position = self.position + len(self.out)
                if needs_horizon:
                    horizon = rules.now + rules.delete_retention_ms
                first = found[f + kernel.FIRST]
                if not is_modern:
                    keep = verdict.keep[first : first + count]
                    if not kept:
                        # Kafka gives a log up here, since old formats have no empty batches: the
                        # batch that ends this round stays whole instead.
                        keep, kept = bytearray(b"\x01" * count), count
                    last_offset, newest = self._modernise(stretch, start, size, keep, horizon)
                elif kept:
                    newest = self._rebuild(stretch, group, row, verdict.keep, first, kept, horizon)
                else:
                    self._empty(_batch(stretch, t))
                size = self.position + len(self.out) - position
            self._indexes.add(position, last_offset, newest)
            statistics.records_written += kept
            statistics.bytes_written += size
        self.out += memory[copied_from:copied_to]

    def _rebuild(
        self,
        stretch: Stretch,
        group: Group,
        row: int,
        keep: bytearray,
        first: int,
        kept: int,
        horizon: int | None,
    ) -> int:
        """A batch of v2 without the records that go; its newest timestamp."""
        table, t = stretch.run.table, row * records_kernel.STRIDE
        size = table[t + records_kernel.BODY_END] - table[t + records_kernel.BODY]
        room = HEADER_SIZE + size + 16 * (kept + 1)
        if len(self._work) < room:
            self._work = bytearray(2 * room)
        end = kernel.rebuild(
            group.source,
            table,
            row,
            keep,
            first,
            horizon is not None,
            0 if horizon is None else horizon,
            self._work,
            HEADER_SIZE,
            self._result,
        )
        assert end > 0, "there is room for what was there before"
        attributes = table[t + records_kernel.ATTRIBUTES] & ~_HORIZON
        if horizon is not None:
            attributes |= _HORIZON
        newest: int = self._result[kernel.MAX_TIMESTAMP]
        if attributes & _LOG_APPEND_TIME:
            newest = table[t + records_kernel.MAX_TIMESTAMP]
        with memoryview(self._work) as work:
            if attributes & 7:
                packed = compress(attributes & 7, work[HEADER_SIZE:end])
                batch = bytearray(HEADER_SIZE) + packed
            else:
                batch = bytearray(work[:end])
        base_offset = table[t + records_kernel.BASE_OFFSET]
        _front(batch, 0, base_offset, len(batch) - 12, table[t + records_kernel.LEADER_EPOCH], 2)
        _back(
            batch,
            21,
            attributes,
            table[t + records_kernel.LAST_OFFSET_DELTA],
            self._result[kernel.BASE_TIMESTAMP],
            newest,
            table[t + records_kernel.PRODUCER_ID],
            table[t + records_kernel.PRODUCER_EPOCH],
            table[t + records_kernel.BASE_SEQUENCE],
            kept,
        )
        _crc(batch, 17, google_crc32c.value(bytes(memoryview(batch)[21:])))
        self.out += batch
        return newest

    def _modernise(
        self, stretch: Stretch, start: int, size: int, keep: bytearray, horizon: int | None
    ) -> tuple[int, int]:
        """A message set of v0 or v1, as a batch of v2 from its first record that stays to its last;
        the last offset and the newest timestamp."""
        old = LegacyBatch(stretch.memory, start, size, start)
        records = [record for record, stays in zip(old.records(), keep, strict=True) if stays]
        is_append_time = old.timestamp_type == "LogAppendTime"
        made = build_batch(
            records,
            codec=old.codec,
            timestamp_type="LogAppendTime" if is_append_time else "CreateTime",
            log_append_time=old.max_timestamp if is_append_time else NO_TIMESTAMP,
            delete_horizon_ms=horizon,
        )
        self.out += made
        new = DefaultBatch(memoryview(made), 0, len(made), 0)
        return new.last_offset, new.max_timestamp

    def _empty(self, batch: DefaultBatch) -> None:
        self.out += empty_batch(
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
            timestamp_type=batch.timestamp_type,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            partition_leader_epoch=batch.partition_leader_epoch,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
        )


def wanted_keys(stretch: Stretch, transactions: Transactions) -> bytearray:
    """Which batches of a run have keys that count: not markers, not aborted transactions."""
    table, stride = stretch.run.table, records_kernel.STRIDE
    wanted = bytearray(b"\x01" * (len(table) // int(stride)))
    for row in _odd(stretch.run, CONTROL | TRANSACTIONAL):
        t = row * stride
        if table[t + records_kernel.MAGIC] == 2:
            if table[t + records_kernel.ATTRIBUTES] & CONTROL:
                transactions.is_empty(_batch(stretch, t))
                wanted[row] = 0
            else:
                last = (
                    table[t + records_kernel.BASE_OFFSET]
                    + table[t + records_kernel.LAST_OFFSET_DELTA]
                )
                producer_id = table[t + records_kernel.PRODUCER_ID]
                wanted[row] = not transactions.is_aborted(producer_id, last)
    return wanted


def _odd(run: Run, bits: int, end: int = -1, lasts: array[int] = _NOBODY) -> Iterator[int]:
    """The batches of a run that have to be looked at one by one: see the kernel."""
    for group in run.groups:
        rows = array("q", bytes(8 * (group.last - group.first)))
        count = kernel.odd_rows(run.table, group.first, group.last, bits, end, lasts, rows)
        yield from rows[:count]


def _batch(stretch: Stretch, t: int) -> DefaultBatch:
    position = stretch.run.table[t]
    size = stretch.run.table[t + records_kernel.SIZE]
    return DefaultBatch(stretch.memory, position - stretch.position, size, position)


def _is_last(last: LastOfProducer | None, last_offset: int, epoch: int, is_control: bool) -> bool:
    """Whether a producer that is still known has its last sequence in a batch, or, where no batch
    of its data is known, its epoch in this marker."""
    if last is None:
        return False
    if last.last_offset is not None:
        return last_offset == last.last_offset
    return is_control and epoch == last.epoch
