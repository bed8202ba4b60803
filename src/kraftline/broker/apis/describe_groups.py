"""DescribeGroups (key 15), versions 0-6. KIP-345, KIP-430, KIP-1043.

- Of a stable classic group also the protocol and what its members say of themselves.
- A group that is not there, or that is not classic, is Dead; from version 6 on that is
  GROUP_ID_NOT_FOUND with a message, too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode

_TELLS_NOT_FOUND: Final = 6
_TELLS_OPERATIONS: Final = 3


def answer(request: DescribeGroupsRequest, context: Context) -> DescribeGroupsResponse:
    refused = []
    described = []
    for group_id in request.groups:
        if context.may(Operation.DESCRIBE, Resource.GROUP, group_id):
            described.append(_describe(group_id, request, context))
        else:
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            refused.append(DescribedGroup(error_code=error, group_id=group_id))
    return DescribeGroupsResponse(groups=(*refused, *described))


def failed(
    request: DescribeGroupsRequest, error: ErrorCode, context: Context
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple(DescribedGroup(error_code=error, group_id=each) for each in request.groups)
    )


def _describe(group_id: str, request: DescribeGroupsRequest, context: Context) -> DescribedGroup:
    try:
        state = context.broker.groups.shards.of(group_id)
    except Refusal as refusal:
        return DescribedGroup(error_code=refusal.code, group_id=group_id)
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        told = _told(group)
    elif context.version < _TELLS_NOT_FOUND:
        told = DescribedGroup(group_id=group_id, group_state=Phase.DEAD.value)
    else:
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} not found."
            if group is None
            else f"Group {group_id} is not a classic group.",
            group_id=group_id,
            group_state=Phase.DEAD.value,
        )
    if context.version >= _TELLS_OPERATIONS and request.include_authorized_operations:
        operations = context.authorized_operations(Resource.GROUP, group_id)
        told = msgspec.structs.replace(told, authorized_operations=operations)
    return told


def _told(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.phase is Phase.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if is_stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata(group.protocol) if is_stable else b"",
                member_assignment=each.assignment,
            )
            for each in group.members.values()
        ),
    )
