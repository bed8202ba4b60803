"""ConsumerGroupHeartbeat (key 68), versions 0-1. KIP-848.

- Epoch 0 joins: the group is made where there is none; a classic group of consumers is taken over
  with its members, as `group.consumer.migration.policy` allows. Epoch -1 leaves; -2 is a static
  member that will be back.
- From version 1 on members make their ids themselves, and may subscribe by a regular expression.
- The answer has the member's epoch and, when it has changed or when the member said everything, the
  partitions that it may read. A member that is told to give partitions up says when it has.
- FENCED_MEMBER_EPOCH: abandon everything and join again. UNKNOWN_MEMBER_ID: nobody knows it.
  UNRELEASED_INSTANCE_ID: another member has the instance id, and lives.
- Topics that the client may not describe: TOPIC_AUTHORIZATION_FAILED; by an expression they are
  just not found.
- Without the protocol in `group.coordinator.rebalance.protocols` or `group.version` 1:
  UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.consumer import heartbeat
from kraftline.broker.coordinators.groups.consumer.deciding import Caller
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.features import GROUP_VERSION
from kraftline.schema.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(
    request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    try:
        check_enabled(context)
        if not context.may(Operation.READ, Resource.GROUP, request.group_id):
            raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)

        def may_describe(topic: str) -> bool:
            return context.may(Operation.DESCRIBE, Resource.TOPIC, topic)

        if context.is_guarded and not all(map(may_describe, request.subscribed_topic_names or ())):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        groups = context.broker.groups
        heartbeat.check_request(request, context.version, groups.consumer)
        caller = Caller(
            context.client_id or "",
            f"/{context.host}",
            context.version,
            may_describe if context.is_guarded else None,
        )
        told = groups.shards.of(request.group_id).desk.heartbeat(request, caller)
    except Refusal as refusal:
        return _refused(refusal)
    return told if isinstance(told, ConsumerGroupHeartbeatResponse) else _later(told)


def check_enabled(context: Context) -> None:
    """Is the new protocol switched on, here and in the cluster?"""
    broker = context.broker
    if (
        "consumer" not in broker.config.texts("group.coordinator.rebalance.protocols")
        or broker.cache.image.features.levels.get(GROUP_VERSION, 0) < 1
    ):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, None)


async def _later(
    told: Awaitable[ConsumerGroupHeartbeatResponse],
) -> ConsumerGroupHeartbeatResponse:
    try:
        return await told
    except Refusal as refusal:
        return _refused(refusal)


def _refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    if refusal.code == ErrorCode.RECORD_LIST_TOO_LARGE:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
