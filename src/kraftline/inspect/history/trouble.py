"""What stands in the way of an answer: damage, gaps, records that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from kraftline.errors import BadData, KraftlineError
from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MINIMUM
from kraftline.metadata.loader.batches import Unreadable
from kraftline.metadata.loader.fault_handling import MetadataFault
from kraftline.metadata.loader.transactions import Transaction
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.storage.segment import Damage


class Trouble(msgspec.Struct, frozen=True):
    """Something that is wrong, and where. `harmless`: it is odd, but hides nothing."""

    reason: str
    file: str | None = None
    position: int | None = None
    offset: int | None = None
    harmless: bool = False

    def __str__(self) -> str:
        where = []
        if self.file is not None:
            where.append(self.file)
        if self.position is not None:
            where.append(f"position {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        return f"{', '.join(where)}: {self.reason}" if where else self.reason


OnTrouble: TypeAlias = Callable[[Trouble], None]


class Unanswerable(KraftlineError):
    """A question that this history has no answer to: outside its range, or about nothing in it."""


class TroubleFaults:
    """Takes the faults of a replay, which goes on without the record, as a broker's does. `file`
    says where an offset is."""

    def __init__(self, trouble: OnTrouble, file: Callable[[int], str | None]) -> None:
        self._trouble = trouble
        self._file = file

    def handle(self, fault: MetadataFault) -> None:
        file = None if fault.offset is None else self._file(fault.offset)
        self._trouble(of_fault(fault, file))


def name_of(transaction: Transaction) -> str:
    name = "" if transaction.name is None else f" {transaction.name!r}"
    return f"the metadata transaction{name} that began at offset {transaction.begin}"


def of_damage(damage: Damage) -> Trouble:
    return Trouble(damage.reason, damage.file, damage.position, damage.offset)


def of_fault(fault: MetadataFault, file: str | None = None) -> Trouble:
    """A record that cannot be read, or does not fit what came before it."""
    record, error, offset = fault.record, fault.__cause__, fault.offset
    if isinstance(record, Unreadable):
        return Trouble(f"a record cannot be read: {record.error.reason}", file, None, offset)
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
    reason = error.reason if isinstance(error, ReplayError | BadData) else str(error)
    what = "" if record is None else f" ({type(record).__name__})"
    return Trouble(f"a record does not fit and was passed over: {reason}{what}", None, None, offset)
