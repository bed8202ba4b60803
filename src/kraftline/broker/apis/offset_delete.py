"""OffsetDelete (key 47), version 0. KIP-496.

- Offsets of topics that no member reads just now; where one does: GROUP_SUBSCRIBED_TO_TOPIC. Where
  nothing is committed nothing happens, and that is no error.
- A group that is not there: GROUP_ID_NOT_FOUND; one with members that are no consumers, so that
  nobody knows what they read: NON_EMPTY_GROUP.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.offsets import tombstone
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

_Told = dict[str, dict[int, ErrorCode]]


def answer(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    group_id = request.group_id
    if not context.may(Operation.DELETE, Resource.GROUP, group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    told: _Told = {}
    wanted = _wanted(request, context, told)
    if not group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
    state = context.broker.groups.shards.of(group_id)
    group = state.groups.get(group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.check_offset_delete()
    offsets = state.offsets
    changes: list[Change] = []
    for topic, partitions in wanted.items():
        subscribed = group.is_subscribed(topic)
        of_topic = told.setdefault(topic, {})
        for each in partitions:
            if subscribed:
                of_topic[each] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            of_topic[each] = ErrorCode.NONE
            if offsets.get(group_id, topic, each) or offsets.is_pending(group_id, topic, each):
                changes.append(tombstone(group_id, topic, each))
    settled = state.shard.write(changes)
    context.broker.groups.counts.deletions += len(changes)
    return _response(told) if settled is None else _later(settled, told)


def _wanted(request: OffsetDeleteRequest, context: Context, told: _Told) -> dict[str, list[int]]:
    """Partitions that there are; what is wrong with others is told already."""
    topics = context.broker.cache.image.topics
    wanted: dict[str, list[int]] = {}
    for topic in request.topics:
        image = topics.named(topic.name)
        is_allowed = context.may(Operation.READ, Resource.TOPIC, topic.name)
        for each in topic.partitions:
            number = each.partition_index
            if not is_allowed:
                told.setdefault(topic.name, {})[number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image is None or image.partition(number) is None:
                told.setdefault(topic.name, {})[number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.setdefault(topic.name, []).append(number)
    return wanted


async def _later(settled: Awaitable[None], told: _Told) -> OffsetDeleteResponse:
    await settled
    return _response(told)


def _response(told: _Told) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(partition_index=number, error_code=error)
                    for number, error in partitions.items()
                ),
            )
            for name, partitions in told.items()
        )
    )
