"""JoinGroup (key 11), versions 0-9. KIP-345, KIP-394, KIP-559, KIP-814.

- The answer comes with the next generation of the group, when its members have joined or their time
  is over; the leader is told who they are, with what each says of itself.
- Without a session timeout between `group.min.session.timeout.ms` and the maximum:
  INVALID_SESSION_TIMEOUT. An empty group id: INVALID_GROUP_ID.
- A member id that no group knows: UNKNOWN_MEMBER_ID. A group is made when somebody without an id
  joins.
- No protocol that all members can take part in, or another type of them:
  INCONSISTENT_GROUP_PROTOCOL. What else is refused is told in `classic.joining`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.joining import Joiner, join, refused
from kraftline.broker.coordinators.groups.group import TakesClassicMembers
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupRequest, JoinGroupResponse

_NULL_NAME: Final = 7


def answer(
    request: JoinGroupRequest, context: Context
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    coordinator = context.broker.groups
    if not request.group_id:
        return _fit(refused(ErrorCode.INVALID_GROUP_ID, request.member_id), context)
    if request.session_timeout_ms not in coordinator.session_timeouts:
        return _fit(refused(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id), context)
    joiner = Joiner(
        request,
        context.version,
        context.client_id,
        f"/{context.host}",
        request.session_timeout_ms if context.version == 0 else request.rebalance_timeout_ms,
    )
    told = _join(coordinator.shards.of(request.group_id), joiner)
    if isinstance(told, JoinGroupResponse):
        return _fit(told, context)
    return _later(told, context)


def failed(request: JoinGroupRequest, error: ErrorCode, context: Context) -> JoinGroupResponse:
    return _fit(refused(error), context)


def _join(state: GroupsState, joiner: Joiner) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    request = joiner.request
    group = state.groups.get(request.group_id)
    if group is not None and not isinstance(group, ClassicGroup) and not group.is_empty:
        if isinstance(group, TakesClassicMembers):
            return group.classic_join(joiner)
        return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id and not isinstance(group, ClassicGroup):
        return refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
    return join(state, state.classic_group(request.group_id), joiner)


async def _later(told: Awaitable[JoinGroupResponse], context: Context) -> JoinGroupResponse:
    return _fit(await told, context)


def _fit(response: JoinGroupResponse, context: Context) -> JoinGroupResponse:
    """Only newer versions can say that there is no protocol."""
    if response.protocol_name is None and context.version < _NULL_NAME:
        return msgspec.structs.replace(response, protocol_name="")
    return response
