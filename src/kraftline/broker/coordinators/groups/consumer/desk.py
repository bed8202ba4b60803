"""The consumer groups of one partition: requests come in and are decided, what was decided is
written, and members have their deadlines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection
from typing import TYPE_CHECKING, Any

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.consumer import (
    heartbeat,
    leaving,
    moves,
    resolving,
)
from kraftline.broker.coordinators.groups.consumer.assignors import ASSIGNORS
from kraftline.broker.coordinators.groups.consumer.clocks import Clocks
from kraftline.broker.coordinators.groups.consumer.deciding import Assigning, Caller, Ground, Step
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.hashing import TopicHashes
from kraftline.broker.coordinators.groups.consumer.led_group import LedGroup
from kraftline.broker.coordinators.groups.consumer.member import (
    AWAY,
    JOINING,
    LEAVING,
    Member,
    MemberState,
)
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.groups.consumer.settling import after, awaited
from kraftline.broker.coordinators.groups.consumer.targets import target_records
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.api.sync_group import SyncGroupResponse
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
)
from kraftline.schema.types import Message

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState

_logger = logging.getLogger(__name__)


class Desk:
    """`replay` is for records, the rest for requests."""

    def __init__(self, state: GroupsState, settings: Settings) -> None:
        self.settings = settings
        self.state = state
        self.clocks = Clocks(state.timers, self._fence)
        self._hashes = TopicHashes()
        self._new_topics_at = 0
        self._resolving: set[str] = set()
        self._assigning: set[str] = set()

    # Records.

    def replay(self, key: Any, value: Message | None, producer: object = None) -> None:
        """A record of a consumer group."""
        state = self.state
        group = state.groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = state.groups[key.group_id] = LedGroup(key.group_id, self)
        if not group.replay(key, value):
            del state.groups[key.group_id]
        elif value is None and state.is_loaded and isinstance(key, ConsumerGroupMemberMetadataKey):
            self.clocks.forget(key.group_id, key.member_id)

    def loaded(self) -> None:
        """Members have one session to be heard of."""
        image = self.state.image()
        self._new_topics_at = image.offset
        for group in self.state.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            session_ms = self.settings.session_ms(group.group_id, image)
            for member in group.members.values():
                self.clocks.session(group.group_id, member.member_id, session_ms)
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
        ground = self.ground(request.group_id)
        group, changes = self._group_for(request, ground)
        heartbeat.check_size(group, request.member_id, self.settings)
        member_id = request.member_id or str(random_uuid())
        classic = [each for each in group.members.values() if changes and each.is_classic]
        step = heartbeat.heartbeat(group, request, member_id, caller, ground, changes)
        settled = self.take(group.group_id, step, ground)
        for each in classic:  # they have come from the classic protocol just now
            self.expect_classic(group, each)
        session_ms = self.settings.session_ms(group.group_id, ground.image)
        self.clocks.session(group.group_id, member_id, session_ms)
        if step.regexes is not None:
            self._resolve(group.group_id, step.regexes, caller)
        interval_ms = self.settings.heartbeat_ms(group.group_id, ground.image)
        return after(settled, heartbeat.response(step, request, interval_ms))

    def _group_for(
        self, request: ConsumerGroupHeartbeatRequest, ground: Ground
    ) -> tuple[ConsumerGroup, list[Change]]:
        """The group of a member, and the records that make it where it is not one already."""
        group_id = request.group_id
        joins = request.member_epoch == JOINING
        group = self.state.groups.get(group_id)
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
            settled = self.state.shard.write(leaving.step_aside(group, member))
        else:
            settled = self.remove(group, [member])
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        return after(settled, response)

    # What all of them lead to.

    def known(self, group_id: str) -> ConsumerGroup:
        group = self.state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        said = f"Group {group_id} not found."
        if group is not None:
            said = f"Group {group_id} is not a consumer group."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, said)

    def ground(self, group_id: str) -> Ground:
        return Ground(
            self.state.image(),
            self.state.shard.clock(),
            self.settings,
            self._hashes,
            self._new_topics_at,
            group_id in self._resolving,
            group_id in self._assigning,
        )

    def take(self, group_id: str, step: Step, ground: Ground) -> Awaitable[None] | None:
        """Write what a member's step comes to."""
        known = self.state.groups.get(group_id)
        before = known.epoch if isinstance(known, ConsumerGroup) else 0
        settled = self.state.shard.write(step.changes)
        group = self.known(group_id)
        group.seen = ground.image.topics
        if group.epoch > before:
            self.state.counts.rebalances += 1
        member = step.member
        if step.has_moved and not member.is_classic:
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._expect_revocation(group, member)
            else:
                self.clocks.no_revocation(group_id, member.member_id)
        if step.assigning is not None:
            self._assigning.add(group_id)
            self.state.spawn(self._assign(group_id, step.assigning))
        return settled

    def remove(self, group: ConsumerGroup, members: Collection[Member]) -> Awaitable[None] | None:
        ground = self.ground(group.group_id)
        if moves.is_downgrade(group, self.settings, members):
            return self.go_down(group, [], ground, leaving=members, is_stale=True)
        return self.state.shard.write(leaving.removed(group, members, ground))

    def go_down(
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
        settled = self.state.shard.write([*changes, *move])
        classic = self.state.groups.get(group.group_id)
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
            self.state.rebalancing.prepare(classic, "it was a consumer group until now")
        return settled

    def _fence(self, group_id: str, member_id: str, why: str, epoch: int | None) -> bool:
        """Put a member out; only if it is still in an epoch, where one is given. False: that could
        not be written."""
        group = self.state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return True
        member = group.members.get(member_id)
        if member is None or (epoch is not None and member.epoch != epoch):
            return True
        _logger.info("%s: %s goes, since %s", group_id, member_id, why)
        try:
            settled = self.remove(group, [member])
        except Refusal as refusal:
            _logger.warning("%s: %s stays: %s", group_id, member_id, refusal.code.name)
            return False
        if settled is not None:
            self.state.spawn(awaited(settled))
        return True

    def _expect_revocation(self, group: ConsumerGroup, member: Member) -> None:
        self.clocks.revocation(
            group.group_id, member.member_id, member.epoch, member.rebalance_timeout_ms
        )

    def expect_classic(self, group: ConsumerGroup, member: Member) -> None:
        assert member.classic is not None
        self.clocks.session(group.group_id, member.member_id, member.classic.session_timeout_ms)

    async def _assign(self, group_id: str, wanted: Assigning) -> None:
        """Find a target in a thread. A group that has changed meanwhile needs another one, which
        its next heartbeat asks for."""
        loop = asyncio.get_running_loop()
        try:
            assignor = ASSIGNORS[wanted.assignor]
            found = await loop.run_in_executor(None, assignor, wanted.task)
        finally:
            self._assigning.discard(group_id)
        group = self.state.groups.get(group_id)
        if (
            not isinstance(group, ConsumerGroup)
            or group.epoch != wanted.epoch
            or group.members.keys() != wanted.task.members.keys()
        ):
            return
        now = self.state.shard.clock()
        changes = target_records(group, wanted.task, found, wanted.epoch, now)
        try:
            settled = self.state.shard.write(changes)
        except Refusal as refusal:
            _logger.warning("%s: its target is as before: %s", group_id, refusal.code)
            return
        if settled is not None:
            await awaited(settled)

    def _resolve(self, group_id: str, regexes: frozenset[str], caller: Caller) -> None:
        """Look up what regular expressions match, in a thread."""
        self._resolving.add(group_id)
        self.state.spawn(self._resolve_now(group_id, regexes, caller))

    async def _resolve_now(self, group_id: str, regexes: frozenset[str], caller: Caller) -> None:
        state = self.state
        try:
            found = await resolving.resolve(
                regexes, state.image(), state.shard.clock(), caller.may_describe
            )
        finally:
            self._resolving.discard(group_id)
        group = state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        ground = self.ground(group_id)
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
            await awaited(settled)


def _send_home(group: ClassicGroup) -> None:
    """Whoever waits in a group that moves on has to join again."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        group.answer_join(
            member,
            JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name=None),
        )
        group.answer_sync(member, SyncGroupResponse(error_code=error))
