"""Heartbeat (key 12), versions 0-4. KIP-345.

- A member of this generation: NONE, or REBALANCE_IN_PROGRESS while the next is being prepared.
- Not a member: UNKNOWN_MEMBER_ID; another generation: ILLEGAL_GENERATION; somebody else has the
  instance id: FENCED_INSTANCE_ID.
- While the group is being loaded nobody is sent away: NONE.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.syncing import heartbeat
from kraftline.broker.coordinators.groups.group import TakesClassicMembers
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest, HeartbeatResponse


def answer(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
    try:
        state = context.broker.groups.shards.of(request.group_id)
    except Refusal as refusal:
        if refusal.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    group = state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return HeartbeatResponse(error_code=heartbeat(state, group, request))
    if isinstance(group, TakesClassicMembers):
        return HeartbeatResponse(error_code=group.classic_heartbeat(request))
    raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
