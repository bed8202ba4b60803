"""OffsetCommit (key 8), versions 2-10. KIP-211, KIP-345, KIP-848, KIP-1251.

- Offsets are records of the group's partition of `__consumer_offsets`; the answer comes when they
  are as durable as that topic asks for.
- A member of the group commits for its generation or epoch; who is none may commit for a group that
  has no members. Which errors there are is told in `Group.check_commit`. For a group that is not
  there: made, without a generation; otherwise GROUP_ID_NOT_FOUND, before version 9
  ILLEGAL_GENERATION.
- Each partition has its own error: UNKNOWN_TOPIC_OR_PARTITION, from version 10 on, where topics
  have ids, UNKNOWN_TOPIC_ID; OFFSET_METADATA_TOO_LARGE past `offset.metadata.max.bytes`.
- Versions 2 to 4 may say how long offsets are kept.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.group import Group
from kraftline.broker.coordinators.groups.offsets import (
    NEVER,
    Committed,
    commit_pair,
    offset_keys,
)
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.broker.coordinators.shard import Pair
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftline.schema.types import ZERO
from kraftline.schema.uuids import Uuid

_TOPIC_IDS: Final = 10
_TELLS_NOT_FOUND: Final = 9
_OK: Final = ErrorCode.NONE.value


def answer(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    told: dict[str | Uuid, _Topic] = {}
    wanted = _wanted(request, context, told)
    if not wanted:
        return _response(told)
    try:
        settled = _commit(request, wanted, context, told)
    except Refusal as refusal:
        _refuse(wanted, refusal, told)
        return _response(told)
    if settled is None:
        return _response(told)
    return _later(settled, wanted, told)


def failed(
    request: OffsetCommitRequest, error: ErrorCode, context: Context
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(_told(each, error) for each in topic.partitions),
            )
            for topic in request.topics
        )
    )


class _Topic:
    """What is told of a topic so far; `key` is what it is known by, its name or its id."""

    __slots__ = ("key", "name", "partitions", "topic_id")

    def __init__(self, key: str | Uuid, name: str, topic_id: Uuid) -> None:
        self.key = key
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = []


_Wanted = list[tuple[_Topic, list[OffsetCommitRequestPartition]]]


def _wanted(
    request: OffsetCommitRequest, context: Context, told: dict[str | Uuid, _Topic]
) -> _Wanted:
    """Partitions that there are; what is wrong with others is told already."""
    topics = context.broker.cache.image.topics
    by_id = context.version >= _TOPIC_IDS
    wanted: _Wanted = []
    for topic in request.topics:
        name, topic_id, error = _find(topic, by_id, topics, context)
        into = _Topic(topic_id if by_id else name, name, topic_id)
        if error:
            _tell(told, into, [_told(each, error) for each in topic.partitions])
            continue
        image = topics.by_id[topic_id]
        good = [each for each in topic.partitions if image.partition(each.partition_index)]
        if len(good) < len(topic.partitions):
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            bad = [
                _told(each, unknown)
                for each in topic.partitions
                if image.partition(each.partition_index) is None
            ]
            _tell(told, into, bad)
        if good:
            wanted.append((into, good))
    return wanted


def _find(
    topic: OffsetCommitRequestTopic, by_id: bool, topics: TopicsImage, context: Context
) -> tuple[str, Uuid, ErrorCode]:
    name, topic_id = topic.name, topic.topic_id
    if by_id:
        image = topics.by_id.get(topic_id)
        if image is None:
            return "", topic_id, ErrorCode.UNKNOWN_TOPIC_ID
        name = image.name
    if not context.may(Operation.READ, Resource.TOPIC, name):
        return name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not by_id:
        found = topics.ids.get(name)
        if found is None:
            return name, ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic_id = found
    return name, topic_id, ErrorCode.NONE


def _commit(
    request: OffsetCommitRequest,
    wanted: _Wanted,
    context: Context,
    told: dict[str | Uuid, _Topic],
) -> Awaitable[None] | None:
    coordinator = context.broker.groups
    state = coordinator.shards.of(request.group_id)
    group = _group(state, request, context)
    check = None
    if group is not None:
        check = group.check_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            is_transactional=False,
            version=context.version,
        )
        if not group.is_empty:
            state.rebalancing.committed(group, request.member_id)
    now = state.shard.clock()
    expires_at = NEVER if request.retention_time_ms == -1 else now + request.retention_time_ms
    commits: list[tuple[str, int, Committed]] = []
    pairs: list[Pair] = []
    answers: list[tuple[_Topic, list[OffsetCommitResponsePartition]]] = []
    for topic, partitions in wanted:
        of_topic = []
        name, topic_id = topic.name, topic.topic_id
        key_of = offset_keys(request.group_id, name)
        for each in partitions:
            number = each.partition_index
            metadata = each.committed_metadata or ""
            error = _OK
            if metadata and coordinator.is_too_large(metadata):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE.value
            elif check is not None:
                check(name, topic_id, number)  # one that may not be is one too many
            if error == _OK:
                committed = Committed(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    metadata,
                    now,
                    expires_at,
                    topic_id if expires_at == NEVER else ZERO,  # no record has a place for both
                )
                commits.append((name, number, committed))
                pairs.append(commit_pair(key_of(number), committed))
            of_topic.append(OffsetCommitResponsePartition(number, error))
        answers.append((topic, of_topic))
    settled = state.commit(request.group_id, commits, pairs) if commits else None
    for topic, of_topic in answers:
        _tell(told, topic, of_topic)
    return settled


def _group(state: GroupsState, request: OffsetCommitRequest, context: Context) -> Group | None:
    """None: it comes to be with its first offset."""
    group = state.groups.get(request.group_id)
    if group is None and request.generation_id_or_member_epoch >= 0:
        if context.version >= _TELLS_NOT_FOUND:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
    return group


async def _later(
    settled: Awaitable[None], wanted: _Wanted, told: dict[str | Uuid, _Topic]
) -> OffsetCommitResponse:
    try:
        await settled
    except Refusal as refusal:
        for topic, partitions in wanted:
            numbers = {each.partition_index for each in partitions}
            kept = told[topic.key]
            kept.partitions = [p for p in kept.partitions if p.partition_index not in numbers]
        _refuse(wanted, refusal, told)
    return _response(told)


def _refuse(wanted: _Wanted, refusal: Refusal, told: dict[str | Uuid, _Topic]) -> None:
    error = refusal.code
    if error == ErrorCode.RECORD_LIST_TOO_LARGE:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    for topic, partitions in wanted:
        _tell(told, topic, [_told(each, error) for each in partitions])


def _told(
    partition: OffsetCommitRequestPartition, error: ErrorCode
) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition.partition_index, error)


def _tell(
    told: dict[str | Uuid, _Topic],
    topic: _Topic,
    partitions: list[OffsetCommitResponsePartition],
) -> None:
    told.setdefault(topic.key, topic).partitions += partitions


def _response(told: dict[str | Uuid, _Topic]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            [
                OffsetCommitResponseTopic(topic.name, topic.topic_id, tuple(topic.partitions))
                for topic in told.values()
            ]
        )
    )
