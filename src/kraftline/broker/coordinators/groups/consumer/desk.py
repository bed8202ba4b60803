"""The consumer groups of one partition: requests come in and are decided, what was decided is
written, and members have their deadlines."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.joining import Joiner
from kraftline.broker.coordinators.groups.consumer import (
    classic_members,
    heartbeat,
    leaving,
    moves,
    resolving,
)
from kraftline.broker.coordinators.groups.consumer.clocks import Clocks
from kraftline.broker.coordinators.groups.consumer.deciding import Caller, Ground, Step
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.hashing import TopicHashes
from kraftline.broker.coordinators.groups.consumer.member import (
    AWAY,
    JOINING,
    LEAVING,
    Member,
    MemberState,
)
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.api.leave_group import MemberIdentity, MemberResponse
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupResponse
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
)
from kraftline.schema.types import Message

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState

_logger = logging.getLogger(__name__)
R = TypeVar("R")


class LedGroup(ConsumerGroup):
    """A consumer group that this broker coordinates: members of the classic protocol may ask it."""

    def __init__(self, group_id: str, desk: Desk) -> None:
        super().__init__(group_id)
        self._desk = desk

    def classic_join(self, joiner: Joiner) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        return self._desk.classic_join(self, joiner)

    def classic_sync(
        self, request: SyncGroupRequest
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        return self._desk.classic_sync(self, request)

    def classic_heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        return self._desk.classic_heartbeat(self, request)

    def classic_leave(self, members: Sequence[MemberIdentity]) -> tuple[MemberResponse, ...]:
        return self._desk.classic_leave(self, members)


class Desk:
    """`replay` is for records, the rest for requests."""

    def __init__(self, state: GroupsState, settings: Settings) -> None:
        self.settings = settings
        self._state = state
        self._clocks = Clocks(state.timers, self._fence)
        self._hashes = TopicHashes()
        self._new_topics_at = 0
        self._resolving: set[str] = set()

    # Records.

    def replay(self, key: Any, value: Message | None, producer: object = None) -> None:
        """A record of a consumer group."""
        state = self._state
        group = state.groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = state.groups[key.group_id] = LedGroup(key.group_id, self)
        if not group.replay(key, value):
            del state.groups[key.group_id]
        elif value is None and state.is_loaded and isinstance(key, ConsumerGroupMemberMetadataKey):
            self._clocks.forget(key.group_id, key.member_id)

    def loaded(self) -> None:
        """Members have one session to be heard of."""
        image = self._state.image()
        self._new_topics_at = image.offset
        for group in self._state.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            session_ms = self.settings.session_ms(group.group_id, image)
            for member in group.members.values():
                self._clocks.session(group.group_id, member.member_id, session_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._expect_revocation(group, member)

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics is not None and delta.topics.created:
            self._new_topics_at = image.offset

    # Members of the new protocol.

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        """The request has passed `heartbeat.check_request`; a Refusal where it is not taken."""
        if request.member_epoch in (LEAVING, AWAY):
            return self._leave(request)
        ground = self._ground(request.group_id)
        group, changes = self._group_for(request, ground)
        heartbeat.check_size(group, request.member_id, self.settings)
        member_id = request.member_id or str(random_uuid())
        classic = [each for each in group.members.values() if changes and each.is_classic]
        step = heartbeat.heartbeat(group, request, member_id, caller, ground, changes)
        settled = self._take(group.group_id, step, ground)
        for each in classic:  # they have come from the classic protocol just now
            self._expect_classic(group, each)
        session_ms = self.settings.session_ms(group.group_id, ground.image)
        self._clocks.session(group.group_id, member_id, session_ms)
        if step.regexes is not None:
            self._resolve(group.group_id, step.regexes, caller)
        interval_ms = self.settings.heartbeat_ms(group.group_id, ground.image)
        return _after(settled, heartbeat.response(step, request, interval_ms))

    def _group_for(
        self, request: ConsumerGroupHeartbeatRequest, ground: Ground
    ) -> tuple[ConsumerGroup, list[Change]]:
        """The group of a member, and the records that make it where it is not one already."""
        group_id = request.group_id
        joins = request.member_epoch == JOINING
        group = self._state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, []
        if not joins:
            said = f"Group {group_id} is not a consumer group."
            if group is None:
                said = f"Consumer group {group_id} not found."
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, said)
        if group is None:
            return ConsumerGroup(group_id), []
        if group.is_empty:
            return ConsumerGroup(group_id), group.tombstones()
        if not isinstance(group, ClassicGroup):
            raise Refusal(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        moves.check_upgrade(group, self.settings)
        made, changes = moves.upgraded(group, ground)
        _send_home(group)
        _logger.info("%s becomes a consumer group", group_id)
        return made, changes

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        group = self.known(request.group_id)
        member = leaving.leaver(group, request)
        if request.member_epoch == AWAY:
            settled = self._state.shard.write(leaving.step_aside(group, member))
        else:
            settled = self._remove(group, [member])
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        return _after(settled, response)

    # Members of the classic protocol.

    def classic_join(
        self, group: ConsumerGroup, joiner: Joiner
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        request = joiner.request
        member_id = request.member_id or str(random_uuid())
        classic_members.check_join(group, request, member_id, self.settings)
        if classic_members.must_know_its_id(joiner):
            return JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None
            )
        ground = self._ground(group.group_id)
        step, goes_down, raised = classic_members.join(group, joiner, member_id, ground)
        group_id = group.group_id
        if goes_down:
            settled = self._go_down(
                group, step.changes, ground, joining=step.member, is_stale=raised is not None
            )
        else:
            settled = self._take(group_id, step, ground)
            self._clocks.has_joined(group_id, member_id)
            self._clocks.session(group_id, member_id, request.session_timeout_ms)
            self._clocks.sync(group_id, member_id, joiner.rebalance_timeout_ms)
        return _after(settled, classic_members.joined(step.member))

    def classic_sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        member = classic_members.member_of(group, request)
        classic_members.check_protocol(member, request)
        if classic_members.must_sync_later(group, member):
            self._clocks.join(group.group_id, member.member_id, member.rebalance_timeout_ms)
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, None)
        self._clocks.has_synced(group.group_id, member.member_id)
        self._expect_classic(group, member)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=classic_members.assignment_of(member, self._state.image().topics),
        )

    def classic_heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        member = classic_members.member_of(group, request)
        self._expect_classic(group, member)
        if not classic_members.must_rejoin(group, member):
            return ErrorCode.NONE
        self._clocks.join(group.group_id, member.member_id, member.rebalance_timeout_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def classic_leave(
        self, group: ConsumerGroup, members: Sequence[MemberIdentity]
    ) -> tuple[MemberResponse, ...]:
        told = []
        gone: dict[str, Member] = {}
        for each in members:
            error = ErrorCode.NONE
            try:
                if each.group_instance_id is None:
                    member = group.member(each.member_id)
                else:
                    member = heartbeat.known_static(group, each.group_instance_id)
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
            settled = self._remove(group, gone.values())
            if settled is not None:
                self._state.spawn(_awaited(settled))
        return tuple(told)

    # What all of them lead to.

    def known(self, group_id: str) -> ConsumerGroup:
        group = self._state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        said = f"Group {group_id} not found."
        if group is not None:
            said = f"Group {group_id} is not a consumer group."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, said)

    def _ground(self, group_id: str) -> Ground:
        return Ground(
            self._state.image(),
            self._state.shard.clock(),
            self.settings,
            self._hashes,
            self._new_topics_at,
            group_id in self._resolving,
        )

    def _take(self, group_id: str, step: Step, ground: Ground) -> Awaitable[None] | None:
        """Write what a member's step comes to."""
        known = self._state.groups.get(group_id)
        before = known.epoch if isinstance(known, ConsumerGroup) else 0
        settled = self._state.shard.write(step.changes)
        group = self.known(group_id)
        group.seen = ground.image.topics
        if group.epoch > before:
            self._state.counts.rebalances += 1
        member = step.member
        if step.has_moved and not member.is_classic:
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._expect_revocation(group, member)
            else:
                self._clocks.no_revocation(group_id, member.member_id)
        return settled

    def _remove(self, group: ConsumerGroup, members: Collection[Member]) -> Awaitable[None] | None:
        ground = self._ground(group.group_id)
        if moves.is_downgrade(group, self.settings, members):
            return self._go_down(group, [], ground, leaving=members, is_stale=True)
        return self._state.shard.write(leaving.removed(group, members, ground))

    def _go_down(
        self,
        group: ConsumerGroup,
        changes: list[Change],
        ground: Ground,
        *,
        leaving: Collection[Member] = (),
        joining: Member | None = None,
        is_stale: bool,
    ) -> Awaitable[None] | None:
        """Become a classic group. Where what its members have is not what they should, they have to
        join again."""
        made, move = moves.downgraded(group, ground, leaving, joining)
        settled = self._state.shard.write([*changes, *move])
        classic = self._state.groups.get(group.group_id)
        assert isinstance(classic, ClassicGroup)
        for member in classic.members.values():
            # The record has only the protocol that is in use.
            known = made.members[member.member_id]
            classic.update(
                member,
                known.protocols,
                known.rebalance_timeout_ms,
                known.session_timeout_ms,
                None,
            )
        _logger.info("%s becomes a classic group", group.group_id)
        if is_stale:
            self._state.rebalancing.prepare(classic, "it was a consumer group until now")
        return settled

    def _fence(self, group_id: str, member_id: str, why: str, epoch: int | None) -> bool:
        """Put a member out; only if it is still in an epoch, where one is given. False: that could
        not be written."""
        group = self._state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return True
        member = group.members.get(member_id)
        if member is None or (epoch is not None and member.epoch != epoch):
            return True
        _logger.info("%s: %s goes, since %s", group_id, member_id, why)
        try:
            settled = self._remove(group, [member])
        except Refusal as refusal:
            _logger.warning("%s: %s stays: %s", group_id, member_id, refusal.code.name)
            return False
        if settled is not None:
            self._state.spawn(_awaited(settled))
        return True

    def _expect_revocation(self, group: ConsumerGroup, member: Member) -> None:
        self._clocks.revocation(
            group.group_id, member.member_id, member.epoch, member.rebalance_timeout_ms
        )

    def _expect_classic(self, group: ConsumerGroup, member: Member) -> None:
        assert member.classic is not None
        self._clocks.session(group.group_id, member.member_id, member.classic.session_timeout_ms)

    def _resolve(self, group_id: str, regexes: frozenset[str], caller: Caller) -> None:
        """Look up what regular expressions match, in a thread."""
        self._resolving.add(group_id)
        self._state.spawn(self._resolve_now(group_id, regexes, caller))

    async def _resolve_now(self, group_id: str, regexes: frozenset[str], caller: Caller) -> None:
        state = self._state
        try:
            found = await resolving.resolve(
                regexes, state.image(), state.shard.clock(), caller.may_describe
            )
        finally:
            self._resolving.discard(group_id)
        group = state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        ground = self._ground(group_id)
        changes, has_risen = resolving.resolved(group, found, ground)
        try:
            settled = state.shard.write(changes)
        except Refusal as refusal:
            _logger.warning("%s: regular expressions are as before: %s", group_id, refusal.code)
            return
        if has_risen:
            group.seen = ground.image.topics
            state.counts.rebalances += 1
        if settled is not None:
            await _awaited(settled)


def _send_home(group: ClassicGroup) -> None:
    """Whoever waits in a group that moves on has to join again."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        group.answer_join(
            member,
            JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name=None),
        )
        group.answer_sync(member, SyncGroupResponse(error_code=error))


def _after(settled: Awaitable[None] | None, response: R) -> R | Awaitable[R]:
    if settled is None:
        return response

    async def later() -> R:
        await settled
        return response

    return later()


async def _awaited(settled: Awaitable[None]) -> None:
    try:
        await settled
    except Refusal as refusal:
        _logger.warning("records may be lost: %s", refusal.code.name)
