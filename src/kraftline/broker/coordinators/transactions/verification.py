"""Records of a transaction are taken only into partitions that its coordinator knows of.

- A partition that has records of the open transaction already was asked for before.
- A client of transaction.version 2 adds partitions by writing to them; of older ones it must be
  true that they have added it before. These are not asked where the broker does not verify.
- Of batches that were sent before it was clear, the first has to come first, also where the
  partition knows nothing of the producer yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.partition import Partition
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode

if TYPE_CHECKING:
    from kraftline.broker.coordinators.transactions.coordinator import TransactionCoordinator


class Client(Enum):
    """What the version of a request says of its client."""

    OLD = "does not know TRANSACTION_ABORTABLE"
    KNOWS_ABORTABLE = "knows TRANSACTION_ABORTABLE"
    ADDS = "adds partitions by writing to them"


class Write(msgspec.Struct, frozen=True, gc=False):
    """Records that somebody wants to write; offsets of a group have no sequence (-1)."""

    topic: str
    number: int
    sequence: int
    partition: Partition | ErrorCode


Verdicts: TypeAlias = dict[tuple[str, int], ErrorCode]
_MANY: Final = 1000


class _Attempt(msgspec.Struct, gc=False):
    """Of a producer that was not let in yet."""

    lowest: int
    epoch: int
    adds: bool
    at: int


class Verifications:
    """What is remembered of writes that were not let in."""

    def __init__(self, clock: Callable[[], int], expiration_ms: int) -> None:
        self._clock = clock
        self._expiration_ms = expiration_ms
        self._attempts: dict[tuple[str, int, int], _Attempt] = {}

    def begin(self, write: Write, who: Producer, client: Client) -> None:
        """Remember a write until it is in the log."""
        key = write.topic, write.number, who.id
        attempt = self._attempts.get(key)
        if attempt is None:
            if len(self._attempts) > _MANY:
                self._expire()
            adds = client is Client.ADDS
            self._attempts[key] = _Attempt(write.sequence, who.epoch, adds, self._clock())
        elif who.epoch > attempt.epoch:
            attempt.epoch, attempt.lowest = who.epoch, write.sequence
        elif who.epoch == attempt.epoch:
            attempt.lowest = min(attempt.lowest, write.sequence)

    def is_out_of_order(self, write: Write, who: Producer) -> bool:
        """Whether one that comes before it is still missing."""
        attempt = self._attempts.get((write.topic, write.number, who.id))
        if attempt is None or not isinstance(write.partition, Partition):
            return False
        if attempt.adds and write.sequence != 0:
            known = write.partition.log.producers.get(who.id)
            if known is None or not known.batches:
                return True
        return write.sequence > attempt.lowest

    def appended(self, topic: str, number: int, producer_id: int) -> None:
        """A write is in the log."""
        self._attempts.pop((topic, number, producer_id), None)

    def marked(self, topic: str, number: int, producer_id: int, epoch: int) -> None:
        """A transaction has ended; writes of the next may be under way."""
        key = topic, number, producer_id
        attempt = self._attempts.get(key)
        if attempt is not None and not (attempt.adds and attempt.epoch == epoch):
            del self._attempts[key]

    def _expire(self) -> None:
        oldest = self._clock() - self._expiration_ms
        self._attempts = {key: each for key, each in self._attempts.items() if each.at > oldest}


def verify(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    who: Producer,
    client: Client,
    writes: Iterable[Write],
) -> Verdicts | Awaitable[Verdicts]:
    """The partitions that records may not be written to, with the error; those of the coordinator
    are as producers know them."""
    verdicts: Verdicts = {}
    asked: list[tuple[str, int]] = []
    for write in writes:
        where, partition = (write.topic, write.number), write.partition
        if not isinstance(partition, Partition):
            verdicts[where] = partition
            continue
        if not partition.is_leader:
            verdicts[where] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            continue
        known = partition.log.producers.get(who.id)
        if known is not None:
            if who.epoch < known.epoch:
                verdicts[where] = ErrorCode.INVALID_PRODUCER_EPOCH
                continue
            if known.txn_first_offset >= 0 and known.epoch == who.epoch:
                continue
        coordinator.verifications.begin(write, who, client)
        asked.append(where)
    if not asked:
        return verdicts
    if not coordinator.shards.partition_count:
        # There are no transactions as long as there is no topic for them.
        return verdicts | dict.fromkeys(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        if client is Client.ADDS:
            added = coordinator.add(transactional_id, who, asked, client_version=2)
            if added is not None:
                return _once(added, asked, verdicts)
        else:
            error = (
                ErrorCode.INVALID_TXN_STATE
                if client is Client.OLD
                else ErrorCode.TRANSACTION_ABORTABLE
            )
            missing = coordinator.missing(transactional_id, who, asked)
            verdicts.update(dict.fromkeys(missing, error))
    except Refusal as refusal:
        verdicts.update(dict.fromkeys(asked, _told(refusal)))
    return verdicts


async def _once(
    added: Awaitable[None], asked: list[tuple[str, int]], verdicts: Verdicts
) -> Verdicts:
    try:
        await added
    except Refusal as refusal:
        verdicts.update(dict.fromkeys(asked, _told(refusal)))
    return verdicts


def _told(refusal: Refusal) -> ErrorCode:
    """Producers expect the older name for this here."""
    if refusal.code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return refusal.code
