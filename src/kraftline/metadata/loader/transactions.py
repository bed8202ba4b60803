"""Metadata transactions (KIP-866): records that take effect together, or not at all."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.loader.batches import Entry, MetadataBatch
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord
from kraftline.schema.types import Message

Marker: TypeAlias = BeginTransactionRecord | EndTransactionRecord | AbortTransactionRecord
# Neighbouring records, and the offset of the first.
Run: TypeAlias = tuple[int, Sequence[Entry]]


class TransactionState(enum.Enum):
    """Where the log stands: STARTED until the first record inside, ENDED and ABORTED until the
    first one behind."""

    NONE = "NO_TRANSACTION"
    STARTED = "STARTED_TRANSACTION"
    CONTINUED = "CONTINUED_TRANSACTION"
    ENDED = "ENDED_TRANSACTION"
    ABORTED = "ABORTED_TRANSACTION"

    @property
    def is_open(self) -> bool:
        return self in _OPEN


_OPEN: Final = (TransactionState.STARTED, TransactionState.CONTINUED)
_MARKERS: Final[frozenset[type]] = frozenset(
    (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)


class Transaction(msgspec.Struct):
    """One that began at an offset. What waits in it takes effect at its End, or never."""

    begin: int
    name: str | None
    waiting: list[Run]


class Transactions:
    """Follows a log from marker to marker, and keeps aside what is inside a transaction."""

    def __init__(self) -> None:
        self.state = TransactionState.NONE
        self.open: Transaction | None = None

    def keeps(self, run: Run) -> bool:
        """Take data records; whether they wait for an End."""
        self.state = after_record(self.state)
        if self.open is None:
            return False
        self.open.waiting.append(run)
        return True

    def mark(self, offset: int, marker: Marker) -> Transaction | None:
        """Take a marker; the transaction that it ends. ReplayError as for `after_marker`."""
        self.state = after_marker(self.state, marker)
        ended, self.open = self.open, None
        if isinstance(marker, BeginTransactionRecord):
            self.open = Transaction(offset, marker.name, [])
        return ended


def runs_of(batch: MetadataBatch) -> list[Run]:
    """A batch's records, divided by markers; each of them is a run of its own."""
    base, records = batch.base_offset, batch.records
    if _MARKERS.isdisjoint(map(type, records)):
        return [(base, records)] if records else []
    found: list[Run] = []
    first = 0
    for index, record in enumerate(records):
        if type(record) in _MARKERS:
            found += [(base + first, records[first:index]), (base + index, (record,))]
            first = index + 1
    found.append((base + first, records[first:]))
    return [run for run in found if run[1]]


def marker_of(run: Run) -> Marker | None:
    """The Begin, End or Abort that a run is, None for data."""
    first = run[1][0]
    # Asked of every batch: quicker than isinstance of three classes.
    return cast(Marker, first) if type(first) in _MARKERS else None


def after_marker(state: TransactionState, marker: Message) -> TransactionState:
    """The state behind a Begin, End or Abort; ReplayError, in Kafka's words, where it has no
    place there."""
    name = type(marker).__name__
    if isinstance(marker, BeginTransactionRecord):
        if state.is_open:
            raise ReplayError(f"Encountered {name} while already in a transaction", record=marker)
        return TransactionState.STARTED
    if not state.is_open:
        raise ReplayError(
            f"Encountered {name} without having seen a BeginTransactionRecord", record=marker
        )
    if isinstance(marker, EndTransactionRecord):
        return TransactionState.ENDED
    return TransactionState.ABORTED


def after_record(state: TransactionState) -> TransactionState:
    """The state behind any other record."""
    return TransactionState.CONTINUED if state.is_open else TransactionState.NONE
