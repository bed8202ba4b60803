"""OffsetFetch (key 9), versions 1-10. KIP-447, KIP-709, KIP-848, KIP-1251.

- What a group has committed of some partitions, or of all (null, from version 2 on); from version 8
  on for any number of groups, each with an error of its own. Nothing committed, or a group that is
  not there: offset -1 without an error.
- With `require_stable` a partition that an open transaction has an offset of is
  UNSTABLE_OFFSET_COMMIT, from version 7 on.
- Topics have ids from version 10 on. What was committed of a topic that is gone does not count for
  another of the same name; a topic that nobody knows: UNKNOWN_TOPIC_ID.
- Which partitions may be told is asked of each topic: TOPIC_AUTHORIZATION_FAILED, or left out where
  all are asked for.
- In version 1 an error of the group is that of each partition.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.offsets import Committed
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kraftline.schema.types import ZERO

_BATCHED: Final = 8
_TOPIC_IDS: Final = 10
_GROUP_ERRORS: Final = 2
_NOWHERE: Final = -1


def answer(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    if context.version >= _BATCHED:
        return OffsetFetchResponse(
            groups=tuple(_of(each, request, context) for each in request.groups)
        )
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in topics
        ),
    )
    return _alone(_of(group, request, context))


def failed(request: OffsetFetchRequest, error: ErrorCode, context: Context) -> OffsetFetchResponse:
    if context.version >= _BATCHED:
        groups = tuple(
            OffsetFetchResponseGroup(group_id=each.group_id, error_code=error)
            for each in request.groups
        )
        return OffsetFetchResponse(groups=groups)
    return OffsetFetchResponse(error_code=error)


def _alone(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The answer of versions that ask for one group."""
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                        each.error_code,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in group.topics
        ),
        error_code=group.error_code,
    )


def _of(
    wanted: OffsetFetchRequestGroup, request: OffsetFetchRequest, context: Context
) -> OffsetFetchResponseGroup:
    group_id = wanted.group_id
    try:
        if not context.may(Operation.DESCRIBE, Resource.GROUP, group_id):
            raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
        state = context.broker.groups.shards.of(group_id)
        group = state.groups.get(group_id)
        if group is not None:
            group.check_fetch(wanted.member_id, wanted.member_epoch)
    except Refusal as refusal:
        return _error(wanted, refusal.code, context)
    topics = context.broker.cache.image.topics
    if wanted.topics is None:
        told = _everything(state, group_id, request.require_stable, topics, context)
    else:
        told = _some(state, wanted, request.require_stable, topics, context)
    return OffsetFetchResponseGroup(group_id=group_id, topics=told)


def _error(
    wanted: OffsetFetchRequestGroup, error: ErrorCode, context: Context
) -> OffsetFetchResponseGroup:
    if context.version >= _GROUP_ERRORS:
        return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error)
    return OffsetFetchResponseGroup(
        group_id=wanted.group_id,
        error_code=error,
        topics=tuple(
            OffsetFetchResponseTopics(name=topic.name, partitions=_all(topic, error))
            for topic in wanted.topics or ()
        ),
    )


def _some(
    state: GroupsState,
    wanted: OffsetFetchRequestGroup,
    stable: bool,
    topics: TopicsImage,
    context: Context,
) -> tuple[OffsetFetchResponseTopics, ...]:
    found = []
    refused = []
    by_id = context.version >= _TOPIC_IDS
    for topic in wanted.topics or ():
        name = topic.name
        error = ErrorCode.NONE
        if by_id:
            image = topics.by_id.get(topic.topic_id)
            name = "" if image is None else image.name
        if by_id and not name:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.may(Operation.DESCRIBE, Resource.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if error:
            refused.append(OffsetFetchResponseTopics(name, topic.topic_id, _all(topic, error)))
            continue
        offsets = state.offsets
        partitions = []
        for number in topic.partition_indexes:
            committed = offsets.get(wanted.group_id, name, number)
            if committed is not None and not committed.is_of(topic.topic_id):
                committed = None
            unstable = stable and offsets.is_pending(wanted.group_id, name, number)
            partitions.append(_partition(number, committed, unstable))
        found.append(OffsetFetchResponseTopics(name, topic.topic_id, tuple(partitions)))
    return (*found, *refused)


def _everything(
    state: GroupsState, group_id: str, stable: bool, topics: TopicsImage, context: Context
) -> tuple[OffsetFetchResponseTopics, ...]:
    by_id = context.version >= _TOPIC_IDS
    offsets = state.offsets
    told = []
    for name, of_topic in offsets.of.get(group_id, {}).items():
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, name):
            continue
        topic_id = ZERO
        if by_id:
            found = topics.ids.get(name)
            if found is None:
                continue  # it is gone, so there is no id to tell it by
            topic_id = found
        told.append(
            OffsetFetchResponseTopics(
                name,
                topic_id,
                tuple(
                    _partition(
                        number, committed, stable and offsets.is_pending(group_id, name, number)
                    )
                    for number, committed in of_topic.items()
                ),
            )
        )
    return tuple(told)


def _partition(
    number: int, committed: Committed | None, unstable: bool
) -> OffsetFetchResponsePartitions:
    if unstable:
        error = ErrorCode.UNSTABLE_OFFSET_COMMIT
        return OffsetFetchResponsePartitions(number, _NOWHERE, error_code=error)
    if committed is None:
        return OffsetFetchResponsePartitions(number, _NOWHERE)
    return OffsetFetchResponsePartitions(
        number, committed.offset, committed.leader_epoch, committed.metadata
    )


def _all(
    topic: OffsetFetchRequestTopics, error: ErrorCode
) -> tuple[OffsetFetchResponsePartitions, ...]:
    return tuple(
        OffsetFetchResponsePartitions(number, _NOWHERE, error_code=error)
        for number in topic.partition_indexes
    )
