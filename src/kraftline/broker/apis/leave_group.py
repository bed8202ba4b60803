"""LeaveGroup (key 13), versions 0-5. KIP-345, KIP-800.

- From version 3 on any number of members, each with an error of its own; before that one, whose
  error is that of the answer.
- A static member goes by its instance id, with or without the id that it has just now:
  FENCED_INSTANCE_ID where that is another's. Not a member: UNKNOWN_MEMBER_ID.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.leaving import leave
from kraftline.broker.coordinators.groups.group import TakesClassicMembers
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_BATCHED: Final = 3


def answer(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, None)
    members = request.members
    if context.version < _BATCHED:
        members = (MemberIdentity(member_id=request.member_id),)
    told = _leave(request.group_id, members, context)
    if context.version < _BATCHED:
        return LeaveGroupResponse(error_code=told[0].error_code)
    return LeaveGroupResponse(members=told)


def _leave(
    group_id: str, members: tuple[MemberIdentity, ...], context: Context
) -> tuple[MemberResponse, ...]:
    state = context.broker.groups.shards.of(group_id)
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return leave(state, group, members)
    if isinstance(group, TakesClassicMembers):
        return group.classic_leave(members)
    return tuple(
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=ErrorCode.UNKNOWN_MEMBER_ID,
        )
        for each in members
    )
