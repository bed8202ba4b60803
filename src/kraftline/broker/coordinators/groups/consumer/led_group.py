"""A consumer group that this broker coordinates: members of the classic protocol may ask it too."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from kraftline.broker.coordinators.groups.classic.joining import Joiner
from kraftline.broker.coordinators.groups.consumer import classic_members, heartbeat
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.member import Member
from kraftline.broker.coordinators.groups.consumer.settling import after, awaited
from kraftline.controller.refusal import Refusal
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.api.leave_group import MemberIdentity, MemberResponse
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.consumer.desk import Desk


class LedGroup(ConsumerGroup):
    """What is wrong is raised as a Refusal."""

    def __init__(self, group_id: str, desk: Desk) -> None:
        super().__init__(group_id)
        self._desk = desk

    def classic_join(self, joiner: Joiner) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        desk = self._desk
        request = joiner.request
        member_id = request.member_id or str(random_uuid())
        classic_members.check_join(self, request, member_id, desk.settings)
        if classic_members.must_know_its_id(joiner):
            return JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None
            )
        ground = desk.ground(self.group_id)
        step, goes_down, raised = classic_members.join(self, joiner, member_id, ground)
        if goes_down:
            settled = desk.go_down(
                self, step.changes, ground, joining=step.member, is_stale=raised is not None
            )
        else:
            settled = desk.take(self.group_id, step, ground)
            desk.clocks.has_joined(self.group_id, member_id)
            desk.clocks.session(self.group_id, member_id, request.session_timeout_ms)
            desk.clocks.sync(self.group_id, member_id, joiner.rebalance_timeout_ms)
        return after(settled, classic_members.joined(step.member))

    def classic_sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        desk = self._desk
        member = classic_members.member_of(self, request)
        classic_members.check_protocol(member, request)
        if classic_members.must_sync_later(self, member):
            desk.clocks.join(self.group_id, member.member_id, member.rebalance_timeout_ms)
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, None)
        desk.clocks.has_synced(self.group_id, member.member_id)
        desk.expect_classic(self, member)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=classic_members.assignment_of(member, desk.state.image().topics),
        )

    def classic_heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        desk = self._desk
        member = classic_members.member_of(self, request)
        desk.expect_classic(self, member)
        if not classic_members.must_rejoin(self, member):
            return ErrorCode.NONE
        desk.clocks.join(self.group_id, member.member_id, member.rebalance_timeout_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def classic_leave(self, members: Sequence[MemberIdentity]) -> tuple[MemberResponse, ...]:
        told = []
        gone: dict[str, Member] = {}
        for each in members:
            error = ErrorCode.NONE
            try:
                if each.group_instance_id is None:
                    member = self.member(each.member_id)
                else:
                    member = heartbeat.known_static(self, each.group_instance_id)
                    if each.member_id:
                        heartbeat.check_instance(member, each.member_id, each.group_instance_id)
                gone[member.member_id] = member
            except Refusal as refusal:
                error = refusal.code
            told.append(
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=error,
                )
            )
        if gone:
            settled = self._desk.remove(self, gone.values())
            if settled is not None:
                self._desk.state.spawn(awaited(settled))
        return tuple(told)
