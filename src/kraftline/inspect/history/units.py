"""The log as units: records that took effect together, with the moment at which they did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kraftline.errors import BadData
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.decoding import OnTrouble, Progress, Record, read_bytes, read_records
from kraftline.inspect.history.transactions import MARKERS, Transaction
from kraftline.inspect.history.trouble import Trouble
from kraftline.records.batch import DefaultBatch
from kraftline.records.control import read_control
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord
from kraftline.schema.types import Message


class Unit(NamedTuple):
    """A batch, the part of one outside transactions, a transaction, or a control batch.

    `ends_at` is the End record of a transaction, at which its records took effect; None for
    records that take effect each at its own offset. `dropped` says why none did.
    """

    batch: Batch
    time: int
    records: list[Record]
    ends_at: int | None = None
    transaction: Transaction | None = None
    dropped: str | None = None


def read_units(
    batches: Sequence[Batch],
    times: Sequence[int],
    trouble: OnTrouble,
    progress: Progress | None = None,
) -> Iterator[Unit]:
    """Every unit of neighbouring batches in order; a transaction that is still open comes last."""
    resolving = _Resolving(trouble)
    for first, last in _between_controls(batches):
        at = first
        if batches[first].is_control:
            yield from _control(batches[first], times[first], trouble)
            continue
        inside: list[Record] = []
        for records in read_records(batches[first:last], trouble, progress):
            for record in records:
                if record.offset > batches[at].last_offset:
                    yield from resolving.split(batches[at], times[at], inside)
                    inside = []
                    while record.offset > batches[at].last_offset:
                        at += 1
                inside.append(record)
        if inside:
            yield from resolving.split(batches[at], times[at], inside)
    if resolving.open is not None:
        last_batch = batches[-1]
        yield Unit(last_batch, times[-1], [], None, resolving.open, "open")


def _between_controls(batches: Sequence[Batch]) -> Iterator[tuple[int, int]]:
    first = 0
    for at, batch in enumerate(batches):
        if batch.is_control:
            if first < at:
                yield first, at
            yield at, at + 1
            first = at + 1
    if first < len(batches):
        yield first, len(batches)


class _Resolving:
    """Cuts batches where transactions begin and end."""

    def __init__(self, trouble: OnTrouble) -> None:
        self.open: Transaction | None = None
        self._trouble = trouble

    def split(self, batch: Batch, time: int, records: list[Record]) -> Iterator[Unit]:
        if self.open is None and not any(type(each.message) in MARKERS for each in records):
            yield Unit(batch, time, records)
            return
        plain: list[Record] = []
        for record in records:
            if type(record.message) not in MARKERS:
                (plain if self.open is None else self.open.records).append(record)
                continue
            if plain:
                yield Unit(batch, time, plain)
                plain = []
            yield from self._marker(batch, time, record)
        if plain:
            yield Unit(batch, time, plain)

    def _marker(self, batch: Batch, time: int, record: Record) -> Iterator[Unit]:
        opened, message = self.open, record.message
        if isinstance(message, BeginTransactionRecord):
            if opened is not None:
                self._odd("a transaction begins inside another, which is dropped", record)
                yield Unit(batch, time, [], record.offset, opened, "another began")
            self.open = Transaction(record.offset, message.name)
            return
        self.open = None
        if opened is None:
            self._odd("the end of a transaction that never began", record)
        elif isinstance(message, EndTransactionRecord):
            yield Unit(batch, time, opened.records, record.offset, opened)
        else:
            reason = str(getattr(message, "reason", None) or "no reason given")
            yield Unit(batch, time, [], record.offset, opened, f"aborted: {reason}")

    def _odd(self, reason: str, record: Record) -> None:
        self._trouble(Trouble(reason, offset=record.offset))


def _control(batch: Batch, time: int, trouble: OnTrouble) -> Iterator[Unit]:
    found: list[Record] = []
    try:
        data = memoryview(read_bytes(batch))
        for record in DefaultBatch(data, 0, len(data), batch.position).records(check_crc=False):
            message = read_control(record).message
            if isinstance(message, Message):
                found.append(Record(record.offset, message))
    except BadData as error:
        trouble(Trouble(error.reason, batch.file, batch.position, batch.base_offset))
    yield Unit(batch, time, found)
