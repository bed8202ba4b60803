"""A log as what took effect together, and where: for whoever tells of it record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.loader.batches import MetadataBatch, Unreadable
from kraftline.metadata.loader.fault_handling import FaultHandler, record_fault
from kraftline.metadata.loader.transactions import (
    Run,
    Transaction,
    Transactions,
    marker_of,
    runs_of,
)
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.no_op_record import NoOpRecord
from kraftline.schema.types import Message


class Placed(msgspec.Struct, gc=False):
    """A record and its offset. Millions are made: a named tuple takes three times as long."""

    offset: int
    message: Message


class Effect(NamedTuple):
    """A batch, the part of one outside transactions, a transaction, or a control batch.

    `batch` is the one that brought it about. `marker` is the offset at which a transaction ended;
    None for records that take effect each at its own. `dropped` says why none of a transaction's
    did.
    """

    batch: MetadataBatch
    records: list[Placed]
    transaction: Transaction | None = None
    marker: int | None = None
    dropped: str | None = None


def effects(batches: Iterable[MetadataBatch], faults: FaultHandler) -> Iterator[Effect]:
    """Every effect in order; a transaction that is still open comes last. Records that cannot be
    read and markers without a place are faults; those that do nothing are left out."""
    transactions = Transactions()
    batch = None
    for batch in batches:
        if batch.controls:
            yield Effect(batch, [])
        for run in runs_of(batch):
            marker = marker_of(run)
            if marker is None:
                if not transactions.keeps(run):
                    yield Effect(batch, placed([run], faults))
                continue
            offset, _ = run
            try:
                ended = transactions.mark(offset, marker)
            except ReplayError as error:
                faults.handle(record_fault(offset, marker, error))
                continue
            if ended is None:
                continue
            if isinstance(marker, AbortTransactionRecord):
                why = f"aborted: {marker.reason or 'no reason given'}"
                yield Effect(batch, [], ended, offset, why)
            else:
                yield Effect(batch, placed(ended.waiting, faults), ended, offset)
    if batch is not None and transactions.open is not None:
        yield Effect(batch, [], transactions.open, None, "open")


def placed(runs: Iterable[Run], faults: FaultHandler) -> list[Placed]:
    """The records of runs that can be read and that do something."""
    found: list[Placed] = []
    for first, records in runs:
        for offset, record in enumerate(records, first):
            if isinstance(record, Unreadable):
                faults.handle(record_fault(offset, record, record.error))
            elif not isinstance(record, NoOpRecord):
                found.append(Placed(offset, record))
    return found
