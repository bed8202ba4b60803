"""Reads one partition for a Fetch: who may read what of it, and up to where.

In Kafka's order: is the partition here, is it the right topic, does the leader epoch match, is
this the leader (newer consumers may read from followers), may this replica, do the logs diverge,
is the offset there.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from kraftline.broker.partition import Partition
from kraftline.errors import BadData
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    PartitionData,
)
from kraftline.schema.lent import Lent
from kraftline.server.parts import FileRange
from kraftline.storage.log import FileRange as LogRange
from kraftline.storage.log import LogProblem

_logger = logging.getLogger(__name__)

_CONSUMER: Final = -1
_READ_COMMITTED: Final = 1
_REPLICA_STATE: Final = 15
_FROM_FOLLOWERS: Final = 11


class Asker(msgspec.Struct, frozen=True, gc=False):
    """Who fetches: a consumer, or a replica by its id."""

    replica_id: int
    committed: bool
    only_leader: bool

    @property
    def is_replica(self) -> bool:
        return self.replica_id >= 0


def asker(request: FetchRequest, version: int) -> Asker:
    told_apart = version >= _REPLICA_STATE
    replica = request.replica_state.replica_id if told_apart else request.replica_id
    only_leader = replica >= 0 or (replica == _CONSUMER and version < _FROM_FOLLOWERS)
    return Asker(replica, request.isolation_level == _READ_COMMITTED, only_leader)


def read(
    partition: Partition,
    wanted: FetchPartition,
    who: Asker,
    *,
    most: int,
    at_least_one: bool,
    is_first: bool = True,
) -> PartitionData:
    """What a partition gives from an offset on, at most so many bytes but for a first batch.

    `is_first` says that the asker has not been here before with this request.
    """
    refused = check_leader(partition, wanted.current_leader_epoch, who.only_leader)
    if refused:
        return unread(wanted.partition, refused)
    if who.is_replica:
        refused = _check_replica(partition, wanted, who)
        if refused:
            return unread(wanted.partition, refused)
    log = partition.log
    high_watermark, start_offset = log.high_watermark, log.start_offset
    stable_offset = log.last_stable_offset
    if wanted.last_fetched_epoch >= 0:
        diverging = _diverging(partition, wanted)
        if isinstance(diverging, int):
            return unread(wanted.partition, diverging)
        if diverging is not None:
            return PartitionData(
                partition_index=wanted.partition,
                high_watermark=high_watermark,
                last_stable_offset=stable_offset,
                log_start_offset=start_offset,
                diverging_epoch=diverging,
                aborted_transactions=None,
                records=b"",
            )
    aborted: tuple[AbortedTransaction, ...] | None = None
    most = min(most, wanted.partition_max_bytes)
    try:
        if who.is_replica:
            given = log.read(wanted.fetch_offset, most, at_least_one=at_least_one)
        elif who.committed:
            committed = log.read_committed(wanted.fetch_offset, most, at_least_one=at_least_one)
            given = committed.range
            aborted = tuple(
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in committed.aborted
            )
        else:
            given = log.read(
                wanted.fetch_offset, most, up_to=high_watermark, at_least_one=at_least_one
            )
    except LogProblem as problem:
        return unread(wanted.partition, problem.code)
    except BadData as problem:
        _logger.error("%s", problem)
        return unread(wanted.partition, ErrorCode.CORRUPT_MESSAGE)
    if who.is_replica and is_first:
        partition.follower_has(who.replica_id, wanted.fetch_offset)
    return PartitionData(
        partition_index=wanted.partition,
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=start_offset,
        aborted_transactions=aborted,
        records=_lent(given),
    )


def check_leader(partition: Partition, current_epoch: int, only_leader: bool) -> int:
    """The error where a client's leader epoch is another, or this broker does not lead."""
    if current_epoch >= 0 and current_epoch != partition.leader_epoch:
        if current_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if only_leader and not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def unread(partition: int, error: int) -> PartitionData:
    """An error that came up while reading."""
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _check_replica(partition: Partition, wanted: FetchPartition, who: Asker) -> int:
    """A broker that has no replica is told to look again: its metadata may be newer than ours."""
    registration = partition.registration
    if registration is not None and who.replica_id in registration.replicas:
        return ErrorCode.NONE
    if wanted.current_leader_epoch >= 0:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _diverging(partition: Partition, wanted: FetchPartition) -> EpochEndOffset | int | None:
    """Where the asker's log and this one part, if its last epoch ends elsewhere here."""
    found = partition.log.end_of_epoch(wanted.last_fetched_epoch)
    if found is None or wanted.fetch_offset < partition.log.start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if found.epoch < wanted.last_fetched_epoch or found.start_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=found.epoch, end_offset=found.start_offset)
    return None


def _lent(given: LogRange) -> bytes:
    """The bytes of a range, which are sent from its file."""
    file = given.file
    if file is None:
        return b""
    lent: object = Lent(given.length, FileRange(file.fd, given.position, given.length, owner=file))
    return lent  # type: ignore[return-value]  # the writer takes it for bytes
