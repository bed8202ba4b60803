"""JoinGroup of a classic group: who may join, as whom, and when it is told the next generation.

- From version 4 on a member without an id is told one, and joins with it: MEMBER_ID_REQUIRED.
- A static member that comes back without its id takes the place of who had its instance id. In a
  stable group whose protocol stays the same nobody else notices; from version 9 on, where it leads,
  it is told to leave assignments alone.
- A member that joins again with nothing new is told the generation that there is.
- More members than `group.max.size`: GROUP_MAX_SIZE_REACHED.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

import msgspec

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.member import Member, Parked
from kraftline.broker.coordinators.groups.classic.records import group_record
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState

_KNOWN_ID: Final = 4
_SKIPPING: Final = 9

Joined = JoinGroupResponse | Awaitable[JoinGroupResponse]


class Joiner(msgspec.Struct, frozen=True, gc=False):
    """Who asks, and how. `rebalance_timeout_ms` is the session's where version 0 has none."""

    request: JoinGroupRequest
    version: int
    client_id: str | None
    client_host: str
    rebalance_timeout_ms: int


def join(state: GroupsState, group: ClassicGroup, joiner: Joiner) -> Joined:
    """Into a group that is there; what is answered may have to wait for the others."""
    request = joiner.request
    member_id = request.member_id
    if not _is_room(state, group, member_id):
        group.remove(member_id)
        return refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if group.phase is Phase.DEAD:
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
    if not group.supports(request.protocol_type, request.protocols):
        return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    if member_id:
        return _again(state, group, joiner)
    new_id = group.new_member_id(joiner.client_id, request.group_instance_id)
    if request.group_instance_id is not None:
        old_id = group.static.get(request.group_instance_id)
        if old_id is not None:
            return _replace(state, group, joiner, old_id, new_id)
    elif joiner.version >= _KNOWN_ID:
        state.rebalancing.expect_return(group, new_id, request.session_timeout_ms)
        return refused(ErrorCode.MEMBER_ID_REQUIRED, new_id)
    return _add(state, group, joiner, new_id)


def refused(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def _is_room(state: GroupsState, group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    most = state.rebalancing.max_size
    match group.phase:
        case Phase.PREPARING:
            # Those who wait are counted: the last to join again are one too many, not the first.
            return (member is not None and member.join is not None) or group.joining < most
        case Phase.COMPLETING | Phase.STABLE:
            return member is not None or group.size < most
        case _:
            return True


def _add(
    state: GroupsState, group: ClassicGroup, joiner: Joiner, member_id: str
) -> Awaitable[JoinGroupResponse]:
    request = joiner.request
    member = Member(
        member_id,
        request.group_instance_id,
        joiner.client_id or "",
        joiner.client_host,
        joiner.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocols,
    )
    member.is_new = True
    if group.phase is Phase.PREPARING and group.before is Phase.EMPTY:
        group.has_newcomer = True
    parked: Parked[JoinGroupResponse] = Parked()
    group.add(member, request.protocol_type, parked)
    state.rebalancing.begun(group, member)
    state.rebalancing.rebalance(group, f"{member_id} joins")
    return parked.future


def _again(state: GroupsState, group: ClassicGroup, joiner: Joiner) -> Joined:
    request = joiner.request
    member_id = request.member_id
    if member_id in group.pending:
        if request.group_instance_id is not None:
            raise Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR, "a static member is never asked to come back"
            )
        return _add(state, group, joiner, member_id)
    try:
        group.check_member(member_id, request.group_instance_id)
    except Refusal as refusal:
        return refused(refusal.code, member_id)
    member = group.members[member_id]
    is_same = member.protocols == request.protocols
    if group.phase is Phase.COMPLETING and is_same:
        # The answer to its last request may have been lost.
        is_leader = member_id == group.leader
        everybody = state.rebalancing.members_for_leader(group) if is_leader else ()
        return state.rebalancing.joined(group, member, everybody)
    if group.phase is Phase.STABLE and is_same and member_id != group.leader:
        return state.rebalancing.joined(group, member, ())
    if group.phase is Phase.EMPTY:
        return refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    parked: Parked[JoinGroupResponse] = Parked()
    _update(group, member, joiner, parked)
    state.rebalancing.rebalance(group, f"{member_id} joins again")
    return parked.future


def _update(
    group: ClassicGroup, member: Member, joiner: Joiner, parked: Parked[JoinGroupResponse] | None
) -> None:
    # Whoever waits already, through a connection that is gone, is not told any more.
    request = joiner.request
    group.update(
        member,
        request.protocols,
        joiner.rebalance_timeout_ms,
        request.session_timeout_ms,
        parked,
    )


def _replace(
    state: GroupsState, group: ClassicGroup, joiner: Joiner, old_id: str, new_id: str
) -> Joined:
    request = joiner.request
    assert request.group_instance_id is not None
    leader = group.leader
    member = group.replace(request.group_instance_id, old_id, new_id)
    state.rebalancing.expect_nothing(group, old_id)
    state.rebalancing.expect_heartbeat(group, member)
    if group.phase is not Phase.STABLE:
        parked: Parked[JoinGroupResponse] = Parked()
        _update(group, member, joiner, parked)
        state.rebalancing.rebalance(group, f"{new_id} takes the place of {old_id}")
        return parked.future
    before = member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    _update(group, member, joiner, None)
    if group.protocol != group.next_protocol():
        parked = Parked()
        _update(group, member, joiner, parked)
        state.rebalancing.rebalance(group, f"{new_id} asks for another protocol")
        return parked.future
    assignments = {each.member_id: each.assignment for each in group.members.values()}
    try:
        settled = state.shard.write([group_record(group, assignments)])
    except Refusal as refusal:
        # Nothing has changed, then: the old id counts again.
        group.update(member, *before, None)
        old = group.replace(request.group_instance_id, new_id, old_id)
        state.rebalancing.expect_nothing(group, new_id)
        state.rebalancing.expect_heartbeat(group, old)
        return JoinGroupResponse(
            error_code=state.error_of_write(refusal),
            generation_id=group.generation,
            protocol_type=group.type,
            protocol_name=group.protocol,
            leader=leader or "",
        )
    told = state.rebalancing.joined(group, member, ())
    if joiner.version < _SKIPPING:
        # It must not take itself for the leader, or it would assign anew.
        told = msgspec.structs.replace(told, leader=leader or "")
    elif new_id == group.leader:
        told = msgspec.structs.replace(
            told, members=state.rebalancing.members_for_leader(group), skip_assignment=True
        )
    return told if settled is None else _when(settled, told)


async def _when(settled: Awaitable[None], told: JoinGroupResponse) -> JoinGroupResponse:
    await settled
    return told
