"""ConsumerGroupDescribe (key 69), versions 0-1. KIP-848.

- Epochs, members with what they have and what they are to have, and the assignor. From version 1 on
  also which protocol a member uses: 0 classic, 1 the new one.
- A group that is not there, or a classic one: GROUP_ID_NOT_FOUND. An empty id: INVALID_GROUP_ID.
- Who may not describe every topic that is assigned is told of no member:
  TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import msgspec

from kraftline.broker.apis.consumer_group_heartbeat import check_enabled
from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.consumer.describing import described
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(
    request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse:
    check_enabled(context)
    return ConsumerGroupDescribeResponse(
        groups=tuple(_told(group_id, request, context) for group_id in request.group_ids)
    )


def failed(
    request: ConsumerGroupDescribeRequest, error: ErrorCode, context: Context
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=tuple(
            DescribedGroup(group_id=group_id, error_code=error) for group_id in request.group_ids
        )
    )


def _told(group_id: str, request: ConsumerGroupDescribeRequest, context: Context) -> DescribedGroup:
    try:
        found = _described(group_id, context)
    except Refusal as refusal:
        return DescribedGroup(
            group_id=group_id, error_code=refusal.code, error_message=refusal.message
        )
    if not request.include_authorized_operations:
        return found
    allowed = context.authorized_operations(Resource.GROUP, group_id)
    return msgspec.structs.replace(found, authorized_operations=allowed)


def _described(group_id: str, context: Context) -> DescribedGroup:
    if not context.may(Operation.DESCRIBE, Resource.GROUP, group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if not group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
    broker = context.broker
    group = broker.groups.shards.of(group_id).desk.known(group_id)
    found = described(group, broker.groups.consumer, broker.cache.image.topics)
    if context.is_guarded:
        topics = {
            topic.topic_name
            for member in found.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        }
        if not all(context.may(Operation.DESCRIBE, Resource.TOPIC, each) for each in topics):
            raise Refusal(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "The group has described topic(s) that the client is not authorized to describe.",
            )
    return found
