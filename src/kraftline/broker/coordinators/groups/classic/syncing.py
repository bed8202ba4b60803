"""SyncGroup and Heartbeat of a classic group.

- The leader brings what it has assigned; once that is in the log everybody is told its part.
- A heartbeat puts off the end of a session, and is how a member hears of a rebalance.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.member import Parked
from kraftline.broker.coordinators.groups.classic.records import group_record
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState

Synced = SyncGroupResponse | Awaitable[SyncGroupResponse]


def sync(state: GroupsState, group: ClassicGroup, request: SyncGroupRequest) -> Synced:
    """What a member has to read, once its leader has said so."""
    if group.phase is Phase.EMPTY:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
    _check(group, request)
    member = group.members[request.member_id]
    if group.phase is Phase.PREPARING:
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, None)
    state.rebalancing.has_synced(group, member.member_id)
    if group.phase is Phase.STABLE:
        return SyncGroupResponse(
            protocol_type=group.type,
            protocol_name=group.protocol,
            assignment=member.assignment,
        )
    parked: Parked[SyncGroupResponse] = Parked()
    member.sync = parked
    if member.member_id == group.leader:
        given = {each.member_id: each.assignment for each in request.assignments}
        _keep(state, group, {each: given.get(each, b"") for each in group.members})
    return parked.future


def heartbeat(state: GroupsState, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """NONE, or that there is a rebalance; a Refusal for who is no member of this generation."""
    if group.phase is Phase.DEAD:
        raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
    state.rebalancing.expect_heartbeat(group, group.members[request.member_id])
    if group.phase is Phase.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.phase is Phase.DEAD:
        raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
    for asked, there in (
        (request.protocol_type, group.type),
        (request.protocol_name, group.protocol),
    ):
        if asked is not None and there is not None and asked != there:
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)


def _keep(state: GroupsState, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    try:
        settled = state.shard.write([group_record(group, assignments)])
    except Refusal as refusal:
        _failed(state, group, refusal)
        return
    if settled is None:
        state.rebalancing.assign(group, assignments)
        return
    generation = group.generation

    async def wait(settled: Awaitable[None]) -> None:
        failure = None
        try:
            await settled
        except Refusal as refusal:
            failure = refusal
        if group.phase is not Phase.COMPLETING or group.generation != generation:
            return  # somebody has joined in the meantime
        if failure is None:
            state.rebalancing.assign(group, assignments)
        else:
            _failed(state, group, failure)

    state.spawn(wait(settled))


def _failed(state: GroupsState, group: ClassicGroup, refusal: Refusal) -> None:
    error = state.error_of_write(refusal)
    state.rebalancing.refuse_assignments(group, error)
    state.rebalancing.rebalance(group, f"assignments could not be kept: {error.name}")
