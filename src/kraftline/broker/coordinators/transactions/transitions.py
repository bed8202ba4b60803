"""From one state of a transaction to the next: pure functions, in Kafka's order of questions.

Each gives what is to be written, or a Refusal. Two ways of ending: clients of transaction.version 2
get a new epoch with every end, so that nothing of the transaction before can slip into the next;
older ones keep their epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kraftline.broker.coordinators.transactions.transaction import (
    LAST_EPOCH,
    MAX_EPOCH,
    NONE,
    Status,
    Transaction,
)
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode

BUMPS_EPOCHS: Final = 2  # the transaction.version from which on every end gives a new epoch


class Producer(msgspec.Struct, frozen=True, gc=False):
    """Who a client says it is."""

    id: int
    epoch: int


class NeedsProducerId(Exception):
    """The epochs of this one are used up: come again with a new one."""


def begun(id: str, producer_id: int, timeout_ms: int, now: int) -> Transaction:
    """A transactional id that was not known before; its first epoch comes with `initialised`."""
    return Transaction(
        id=id,
        producer_id=producer_id,
        epoch=NONE,
        timeout_ms=timeout_ms,
        status=Status.EMPTY,
        partitions=frozenset(),
        started_at=NONE,
        updated_at=now,
    )


def initialised(
    old: Transaction,
    timeout_ms: int,
    expected: Producer | None,
    now: int,
    new_id: int | None = None,
) -> Transaction:
    """A producer begins, or goes on after an error (then it says who it was). The transaction
    before it must be over: an ONGOING one is for `fenced`."""
    if expected is not None and not may_be(expected, old):
        raise Refusal(ErrorCode.PRODUCER_FENCED, None)
    if old.status.is_prepared or old.status is Status.ONGOING:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, None)
    producer_id = old.producer_id
    if old.is_exhausted:
        if expected is not None and expected.epoch != old.epoch:
            # Kafka has no answer to this.
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if new_id is None:
            raise NeedsProducerId
        producer_id, epoch = new_id, 0
        last_epoch = NONE if expected is None else old.epoch
    elif expected is None:
        epoch, last_epoch = old.epoch + 1, NONE
    elif old.epoch == NONE or expected.epoch == old.epoch:
        epoch, last_epoch = old.epoch + 1, old.epoch
    elif expected.epoch == old.last_epoch:
        # Asked again: nobody else has begun since, as that would have forgotten the last epoch.
        epoch, last_epoch = old.epoch, old.last_epoch
    else:
        raise Refusal(ErrorCode.PRODUCER_FENCED, None)
    return msgspec.structs.replace(
        old,
        producer_id=producer_id,
        previous_id=old.producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        status=Status.EMPTY,
        partitions=frozenset(),
        started_at=NONE,
        updated_at=now,
    )


def with_partitions(
    old: Transaction,
    who: Producer,
    partitions: Iterable[tuple[str, int]],
    client_version: int,
    now: int,
) -> Transaction | None:
    """Partitions are to have records of the transaction, which begins with the first; None where
    it has them already."""
    _check(old, who)
    if old.status.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, None)
    together = old.partitions.union(partitions)
    if old.status is Status.ONGOING and len(together) == len(old.partitions):
        return None
    return msgspec.structs.replace(
        old,
        previous_id=old.producer_id,
        status=Status.ONGOING,
        partitions=together,
        started_at=old.started_at if old.status is Status.ONGOING else now,
        updated_at=now,
        client_version=client_version,
    )


def check_has(old: Transaction, who: Producer) -> None:
    """A Refusal unless the producer's transaction may be asked for its partitions."""
    _check(old, who)
    if old.status.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, None)


def ended(
    old: Transaction,
    who: Producer,
    is_commit: bool,
    client_version: int,
    now: int,
    new_id: int | None = None,
) -> Transaction | None:
    """A client wants its transaction to end; None where it has ended that way already."""
    if client_version < BUMPS_EPOCHS:
        return _ended_in_epoch(old, who, is_commit, now)
    return _ended_with_next_epoch(old, who, is_commit, now, new_id)


def fenced(old: Transaction, version: int, now: int, new_id: int | None = None) -> Transaction:
    """An ONGOING transaction is aborted from here, and its producer locked out by a higher epoch:
    it took too long, or another one begins. `version` is the cluster's transaction.version."""
    if version >= BUMPS_EPOCHS:
        return _prepared(old, False, now, new_id)
    return msgspec.structs.replace(
        old,
        previous_id=old.producer_id,
        epoch=min(old.epoch + 1, MAX_EPOCH),
        last_epoch=NONE,
        status=Status.PREPARE_ABORT,
        updated_at=now,
        client_version=0,
    )


def completed(old: Transaction, now: int) -> Transaction:
    """All partitions know how it ended."""
    renewed = old.client_version >= BUMPS_EPOCHS and old.next_id != NONE
    return msgspec.structs.replace(
        old,
        producer_id=old.next_id if renewed else old.producer_id,
        previous_id=old.producer_id,
        next_id=NONE,
        epoch=0 if renewed else old.epoch,
        status=Status.COMPLETE_COMMIT
        if old.status is Status.PREPARE_COMMIT
        else Status.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_at=now,
    )


def _check(old: Transaction, who: Producer) -> None:
    if old.producer_id != who.id:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, None)
    if old.epoch != who.epoch:
        raise Refusal(ErrorCode.PRODUCER_FENCED, None)


def may_be(who: Producer, old: Transaction) -> bool:
    """Whether a producer may be the one that was last given this id, or be about to learn that it
    has a new producer id."""
    return (
        old.epoch == NONE
        or who.id == old.producer_id
        or (who.id == old.previous_id and who.epoch >= LAST_EPOCH)
    )


def _ended_in_epoch(
    old: Transaction, who: Producer, is_commit: bool, now: int
) -> Transaction | None:
    _check(old, who)
    if old.status is Status.ONGOING:
        return msgspec.structs.replace(
            old,
            previous_id=old.producer_id,
            status=Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT,
            next_id=NONE,
            updated_at=now,
            client_version=0,
        )
    _check_again(old, is_commit)
    return None


def _ended_with_next_epoch(
    old: Transaction, who: Producer, is_commit: bool, now: int, new_id: int | None
) -> Transaction | None:
    status = old.status
    had_a_new_id = old.previous_id == who.id and who.epoch == LAST_EPOCH and old.epoch == 0
    is_again = had_a_new_id or old.epoch == who.epoch + 1
    if old.producer_id != who.id and not had_a_new_id:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, None)
    if status.is_prepared:
        is_valid = old.epoch == who.epoch + 1
    elif status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT):
        is_valid = is_again or old.epoch == who.epoch
    else:
        is_valid = old.epoch == who.epoch
    if not is_valid:
        raise Refusal(ErrorCode.PRODUCER_FENCED, None)
    if status is Status.ONGOING:
        return _prepared(old, is_commit, now, new_id)
    if status.is_over and not is_commit and (status is Status.EMPTY or not is_again):
        # Such a client does not know whether any of its records has begun the transaction.
        return _prepared(old, False, now, new_id)
    if status.is_over and not is_again:
        raise Refusal(ErrorCode.INVALID_TXN_STATE, None)
    _check_again(old, is_commit)
    return None


def _check_again(old: Transaction, is_commit: bool) -> None:
    """Asked again for an end that has come, or is on its way."""
    wanted = (
        (Status.PREPARE_COMMIT, Status.COMPLETE_COMMIT)
        if is_commit
        else (Status.PREPARE_ABORT, Status.COMPLETE_ABORT)
    )
    if old.status not in wanted:
        raise Refusal(ErrorCode.INVALID_TXN_STATE, None)
    if old.status.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, None)


def _prepared(old: Transaction, is_commit: bool, now: int, new_id: int | None) -> Transaction:
    """It ends with the next epoch. The last one but one is followed by a new producer id."""
    if old.is_exhausted and new_id is None:
        raise NeedsProducerId
    return msgspec.structs.replace(
        old,
        previous_id=old.producer_id,
        next_id=new_id if old.is_exhausted and new_id is not None else NONE,
        epoch=min(old.epoch + 1, MAX_EPOCH),
        last_epoch=old.epoch,
        status=Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT,
        started_at=old.started_at if old.status is Status.ONGOING else now,
        updated_at=now,
        client_version=BUMPS_EPOCHS,
    )
