"""Records that take effect together: a batch, or a metadata transaction with all its batches.

A record inside a transaction takes effect at the offset of its End record; of one that was
aborted, or that nobody ended, nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kraftline.inspect.history.decoding import Record
from kraftline.inspect.history.trouble import Trouble
from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MINIMUM
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.types import Message

MARKERS: Final[frozenset[type[Message]]] = frozenset(
    {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord}
)


class Transaction:
    """One that has begun: its name and what waits in it."""

    __slots__ = ("name", "offset", "records")

    def __init__(self, offset: int, name: str | None) -> None:
        self.offset = offset
        self.name = name
        self.records: list[Record] = []


class Replay:
    """Puts records into a delta as they take effect; a record that does not fit goes to
    `trouble` and is passed over, as a Kafka node would."""

    def __init__(self, delta: MetadataDelta, trouble: Callable[[Trouble], None]) -> None:
        self.delta = delta
        self.open: Transaction | None = None
        self._trouble = trouble

    def take(self, records: Iterable[Record]) -> None:
        replay, markers = self.delta.replay, MARKERS
        for record in records:
            message = record.message
            if type(message) in markers:
                for waiting in self.marker(record):
                    self._one(waiting)
            elif self.open is not None:
                self.open.records.append(record)
            else:
                try:
                    replay(message)
                except ReplayError as error:
                    self._refused(error, record.offset)

    def publish(self, provenance: Provenance) -> MetadataImage:
        """The image so far; what waits in an open transaction goes on waiting."""
        image = self.delta.apply(provenance)
        self.delta = MetadataDelta(image)
        return image

    def marker(self, record: Record) -> list[Record]:
        """Take a Begin, End or Abort; the records that take effect by it."""
        opened = self.open
        match record.message:
            case BeginTransactionRecord(name=name):
                if opened is not None:
                    self._odd("a transaction begins inside another, which is dropped", record)
                self.open = Transaction(record.offset, name)
                return []
            case EndTransactionRecord():
                if opened is None:
                    self._odd("the end of a transaction that never began", record)
                    return []
                self.open = None
                return opened.records
            case _:
                if opened is None:
                    self._odd("a transaction is aborted that never began", record)
                self.open = None
                return []

    def _one(self, record: Record) -> None:
        try:
            self.delta.replay(record.message)
        except ReplayError as error:
            self._refused(error, record.offset)

    def _refused(self, error: ReplayError, offset: int) -> None:
        self._trouble(refusal(error, offset))

    def _odd(self, reason: str, record: Record) -> None:
        self._trouble(Trouble(reason, offset=record.offset))


def refusal(error: ReplayError, offset: int) -> Trouble:
    """A record that does not fit what came before it."""
    record = error.record
    if isinstance(record, FeatureLevelRecord) and record.feature_level < MINIMUM.level:
        # Only the level is unknown, and later levels replace it.
        return Trouble(
            f"metadata.version {record.feature_level} is of an early Kafka 3 and is passed over: "
            f"the first that can be read is {MINIMUM.level}",
            None,
            None,
            offset,
            harmless=True,
        )
    what = "" if error.record is None else f" ({type(error.record).__name__})"
    return Trouble(
        f"a record does not fit and was passed over: {error.reason}{what}", None, None, offset
    )
