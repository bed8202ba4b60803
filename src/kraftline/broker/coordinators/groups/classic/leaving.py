"""LeaveGroup of a classic group: members go, and the others share what they had.

A member is named by its id, a static one by its instance id too; who administers a group names it
by the instance id alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.leave_group import MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState


def leave(
    state: GroupsState, group: ClassicGroup, members: Sequence[MemberIdentity]
) -> tuple[MemberResponse, ...]:
    """What each is told."""
    if group.phase is Phase.DEAD:
        raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    answers = tuple(
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=_leave(state, group, each),
        )
        for each in members
    )
    if any(each.error_code == ErrorCode.NONE for each in answers):
        if group.phase in (Phase.STABLE, Phase.COMPLETING):
            state.rebalancing.rebalance(group, "members leave")
        else:
            state.rebalancing.proceed(group)
    return answers


def _leave(state: GroupsState, group: ClassicGroup, who: MemberIdentity) -> ErrorCode:
    member_id = who.member_id
    if not member_id:
        known = group.static.get(who.group_instance_id or "")
        if who.group_instance_id is None or known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    elif member_id in group.pending:
        group.remove(member_id)
        state.rebalancing.expect_nothing(group, member_id)
        return ErrorCode.NONE
    else:
        try:
            group.check_member(member_id, who.group_instance_id)
        except Refusal as refusal:
            return refusal.code
    state.rebalancing.expect_nothing(group, member_id)
    state.rebalancing.drop(group, group.members[member_id])
    return ErrorCode.NONE
