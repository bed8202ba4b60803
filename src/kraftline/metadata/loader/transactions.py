"""Metadata transactions (KIP-866): records that take effect together, or not at all."""

from __future__ import annotations

import enum
from typing import Final

from kraftline.metadata.faults import ReplayError
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord
from kraftline.schema.types import Message


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
MARKERS: Final[frozenset[type]] = frozenset(
    (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)


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
