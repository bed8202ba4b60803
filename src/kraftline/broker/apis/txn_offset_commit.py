"""TxnOffsetCommit (key 28), versions 0-5. KIP-98, KIP-447, KIP-890.

- Offsets of a group that count once the producer's transaction is committed: records of the group's
  partition of `__consumer_offsets`, which the transaction must have. From version 5 on it gets it
  here; before that AddOffsetsToTxn has come first.
- From version 3 on the member of the group says who it is, and is checked as with OffsetCommit; a
  stale epoch is ILLEGAL_GENERATION here.
- Each partition has its own error: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED,
  OFFSET_METADATA_TOO_LARGE; what keeps all of them out is told of each.
- While the coordinator loads: COORDINATOR_LOAD_IN_PROGRESS, before version 2
  COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.group import CheckPartition
from kraftline.broker.coordinators.groups.offsets import Committed, commit_record
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.broker.coordinators.state import Producer as Writer
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.coordinators.transactions.verification import Client, Write, verify
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kraftline.schema.coordinator.frame import OFFSETS
from kraftline.schema.types import ZERO

_ADDS_PARTITIONS: Final = 5
_KNOWS_ABORTABLE: Final = 4
_KNOWS_LOADING: Final = 2
_NO_SEQUENCE: Final = -1
# What is wrong with the partition of offsets, as those who commit offsets know it.
_TOLD: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

_Wanted = list[tuple[str, TxnOffsetCommitRequestPartition]]
_Errors = dict[tuple[str, int], ErrorCode]


async def answer(request: TxnOffsetCommitRequest, context: Context) -> TxnOffsetCommitResponse:
    id, group = request.transactional_id, request.group_id
    if not context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    if not context.may(Operation.READ, Resource.GROUP, group):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    wanted, errors = _wanted(request, context)
    if wanted:
        try:
            if not group:
                raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
            await _verify(request, context)
            settled = _commit(request, wanted, context, errors)
            if settled is not None:
                await settled
        except Refusal as refusal:
            error = _of_version(refusal.code, context)
            errors.update({(name, each.partition_index): error for name, each in wanted})
    return _response(errors)


def failed(
    request: TxnOffsetCommitRequest, error: ErrorCode, context: Context
) -> TxnOffsetCommitResponse:
    error = _of_version(error, context)
    return _response(
        {
            (topic.name, each.partition_index): error
            for topic in request.topics
            for each in topic.partitions
        }
    )


def _of_version(error: ErrorCode, context: Context) -> ErrorCode:
    error = _TOLD.get(error, error)
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < _KNOWS_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def _wanted(request: TxnOffsetCommitRequest, context: Context) -> tuple[_Wanted, _Errors]:
    """Partitions that there are; what is wrong with others is told already."""
    topics = context.broker.cache.image.topics
    wanted: _Wanted = []
    errors: _Errors = {}
    for topic in request.topics:
        found = topics.named(topic.name)
        allowed = context.may(Operation.READ, Resource.TOPIC, topic.name)
        for each in topic.partitions:
            where = topic.name, each.partition_index
            if not allowed:
                errors[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found is None or found.partition(each.partition_index) is None:
                errors[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append((topic.name, each))
    return wanted, errors


async def _verify(request: TxnOffsetCommitRequest, context: Context) -> None:
    """The transaction has the partition of the group's offsets, or gets it."""
    broker = context.broker
    number = broker.groups.shards.partition_of(request.group_id)
    if number is None:
        raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    client = _client(context.version)
    if client is not Client.ADDS and not broker.verifies_transactions:
        return
    partition = broker.partitions.find(OFFSETS.name, number, broker.cache.image.topics)
    verdicts = verify(
        broker.transactions,
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        client,
        (Write(OFFSETS.name, number, _NO_SEQUENCE, partition),),
    )
    if not isinstance(verdicts, dict):
        verdicts = await verdicts
    for error in verdicts.values():
        raise Refusal(error, None)


def _client(version: int) -> Client:
    if version >= _ADDS_PARTITIONS:
        return Client.ADDS
    return Client.KNOWS_ABORTABLE if version >= _KNOWS_ABORTABLE else Client.OLD


def _commit(
    request: TxnOffsetCommitRequest, wanted: _Wanted, context: Context, errors: _Errors
) -> Awaitable[None] | None:
    broker, group = context.broker, request.group_id
    state = broker.groups.shards.of(group)
    check = _check(state, request, context)
    ids = broker.cache.image.topics.ids
    now = state.shard.clock()
    changes = []
    found: _Errors = {}
    for name, each in wanted:
        number, metadata = each.partition_index, each.committed_metadata or ""
        if metadata and broker.groups.is_too_large(metadata):
            found[name, number] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        if check is not None:
            check(name, ids.get(name, ZERO), number)
        committed = Committed(each.committed_offset, each.committed_leader_epoch, metadata, now)
        changes.append(commit_record(group, name, number, committed))
        found[name, number] = ErrorCode.NONE
    writer = Writer(request.producer_id, request.producer_epoch)
    settled = state.shard.write(changes, writer)
    if changes:
        number = state.shard.number
        broker.transactions.verifications.appended(OFFSETS.name, number, writer.id)
    broker.groups.counts.commits += len(changes)
    errors.update(found)
    return settled


def _check(
    state: GroupsState, request: TxnOffsetCommitRequest, context: Context
) -> CheckPartition | None:
    """May this member commit? None also where the group comes to be with its first offset."""
    group = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
        return None
    return group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        is_transactional=True,
        version=context.version,
    )


def _response(errors: _Errors) -> TxnOffsetCommitResponse:
    topics: dict[str, list[TxnOffsetCommitResponsePartition]] = {}
    for (name, number), error in errors.items():
        topics.setdefault(name, []).append(
            TxnOffsetCommitResponsePartition(partition_index=number, error_code=error)
        )
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )
