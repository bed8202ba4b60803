"""What is known of one transactional id, and the record that says it.

The log keeps all of it but `last_epoch`; before transaction.version 1 it does not keep the other
producer ids and the client's version either. What it does not keep only matters to a client that
asks again for what it has been given already.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from kraftline.broker.coordinators.state import Change
from kraftline.errors import BadData
from kraftline.schema.coordinator.transaction.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

NONE: Final = -1
MAX_EPOCH: Final = 32767
# The largest epoch that a client is given: the coordinator can always fence it with the next.
LAST_EPOCH: Final = MAX_EPOCH - 1
NEVER: Final = 2**31 - 1  # the timeout of transactions that somebody else decides on


class Status(IntEnum):
    """Where a transaction stands, as its records number it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def told(self) -> str:
        """As clients and tools know it."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """Decided, and not yet told to all partitions."""
        return self is Status.PREPARE_COMMIT or self is Status.PREPARE_ABORT

    @property
    def is_over(self) -> bool:
        """Nothing is going on: another transaction may begin, and the id may expire."""
        return self in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


BY_NAME: Final = {status.told: status for status in Status}


class Transaction(msgspec.Struct, frozen=True):
    """A transactional id with its newest transaction. `partitions` are those that have records of
    it; `next_id` is the producer id that begins when the transaction is over, where the epochs of
    this one are used up; `client_version` is the transaction.version that the client spoke."""

    id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    status: Status
    partitions: frozenset[tuple[str, int]]
    started_at: int
    updated_at: int
    client_version: int = 0
    previous_id: int = NONE
    next_id: int = NONE
    last_epoch: int = NONE

    @property
    def is_exhausted(self) -> bool:
        """Its producer id has no epoch left for a client."""
        return self.epoch >= LAST_EPOCH


def change(transaction: Transaction, version: int) -> Change:
    """The record that says it, in a version of the value."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    is_flexible = version >= 1
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_id if is_flexible else NONE,
        next_producer_id=transaction.next_id if is_flexible else NONE,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None
        if transaction.status is Status.EMPTY
        else tuple(
            PartitionsSchema(topic=topic, partition_ids=tuple(partitions))
            for topic, partitions in topics.items()
        ),
        transaction_last_update_timestamp_ms=transaction.updated_at,
        transaction_start_timestamp_ms=transaction.started_at,
        client_transaction_version=transaction.client_version if is_flexible else 0,
    )
    return Change(TransactionLogKey(transactional_id=transaction.id), value, version)


def read(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    """What a record says; BadData where it has a status that there is not."""
    try:
        status = Status(value.transaction_status)
    except ValueError:
        raise BadData(
            f"a transaction of {key.transactional_id} with status {value.transaction_status}"
        ) from None
    return Transaction(
        id=key.transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        status=status,
        partitions=frozenset()
        if status is Status.EMPTY
        else frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_at=value.transaction_start_timestamp_ms,
        updated_at=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
    )
