"""SyncGroup (key 14), versions 0-5. KIP-345, KIP-559.

- The answer comes once the leader has sent what it assigned, and that is in the log.
- Not a member: UNKNOWN_MEMBER_ID; another generation: ILLEGAL_GENERATION; a rebalance has begun:
  REBALANCE_IN_PROGRESS; somebody else has the instance id: FENCED_INSTANCE_ID.
- From version 5 on protocol type and name must be there, and be the group's:
  INCONSISTENT_GROUP_PROTOCOL.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.syncing import sync
from kraftline.broker.coordinators.groups.group import TakesClassicMembers
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL: Final = 5


def answer(
    request: SyncGroupRequest, context: Context
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    if context.version >= _NAMES_PROTOCOL and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
    state = context.broker.groups.shards.of(request.group_id)
    group = state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return sync(state, group, request)
    if isinstance(group, TakesClassicMembers) and not group.is_empty:
        return group.classic_sync(request)
    raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
