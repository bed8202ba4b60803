"""How a classic group goes from one generation to the next.

Its timers are kept by the group's id: one for joining, one for asking for assignments, and one for
the session of each member. A member that waits for an answer has no need of heartbeats, but one
that is new may wait for five minutes at most: whoever joins, is cut off and joins again is not
counted for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.member import Member
from kraftline.broker.coordinators.groups.classic.records import group_record
from kraftline.broker.coordinators.groups.group import Group
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupResponse, JoinGroupResponseMember
from kraftline.schema.api.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.state import GroupsState

_logger = logging.getLogger(__name__)
_NEW_MEMBER_MS: Final = 5 * 60 * 1000
_JOIN: Final = "join"
_SYNC: Final = "sync"


class Rebalancing:
    """Of all classic groups of one partition."""

    def __init__(self, state: GroupsState) -> None:
        self._state = state
        self._timers = state.timers
        self._initial_delay_ms = state.config.whole("group.initial.rebalance.delay.ms")
        self.max_size = state.config.whole("group.max.size")

    def resume(self, group: ClassicGroup) -> None:
        """A group was read from the log: its members have one session to come back."""
        for member in group.members.values():
            self.expect_heartbeat(group, member)
        if len(group.members) > self.max_size:
            self.prepare(group, "it has more members than there may be now")

    def forget(self, group: ClassicGroup) -> None:
        """A group is gone: so are its timers."""
        for key in (_JOIN, _SYNC):
            self._timers.cancel((group.group_id, key))
        for member_id in (*group.members, *group.pending):
            self.expect_nothing(group, member_id)

    def expect_heartbeat(self, group: ClassicGroup, member: Member) -> None:
        """A heartbeat came, or as good as one: the member's session begins anew."""
        self._expect(group, member.member_id, member.session_timeout_ms)

    def expect_return(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Somebody was told its id, and has to come back with it."""
        group.pending.add(member_id)
        self._expect(group, member_id, session_timeout_ms)

    def expect_nothing(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel((group.group_id, "", member_id))

    def committed(self, group: Group, member_id: str) -> None:
        """A commit is as good as a heartbeat."""
        if isinstance(group, ClassicGroup) and group.phase in (Phase.STABLE, Phase.PREPARING):
            member = group.members.get(member_id)
            if member is not None:
                self.expect_heartbeat(group, member)

    def begun(self, group: ClassicGroup, member: Member) -> None:
        """A new member waits for the next generation."""
        self._expect(group, member.member_id, _NEW_MEMBER_MS)

    def rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Something has changed that asks for a new generation."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.proceed(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Members have to join again, and who waits for an assignment is told so."""
        state = self._state
        if group.phase is Phase.COMPLETING:
            self.refuse_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.unsynced.clear()
        self._timers.cancel((group.group_id, _SYNC))
        is_first = group.phase is Phase.EMPTY
        _logger.info("%s: %s, so generation %d ends", group.group_id, reason, group.generation)
        group.enter(Phase.PREPARING, state.shard.clock())
        if is_first:
            # The others are about to come too.
            delay = self._initial_delay_ms
            remaining = max(group.rebalance_timeout_ms - delay, 0)
            self._wait(group, delay, remaining)
        elif group.have_all_joined:
            self.complete_join(group)
        else:
            self._await_all(group)

    def proceed(self, group: ClassicGroup) -> None:
        """The next generation begins if nothing is to be waited for any more."""
        is_first = group.before is Phase.EMPTY
        if group.phase is Phase.PREPARING and not is_first and group.have_all_joined:
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """The next generation begins with those who have joined, and static members."""
        state = self._state
        self._timers.cancel((group.group_id, _JOIN))
        if group.phase is Phase.DEAD:
            return
        for member in tuple(group.members.values()):
            if member.join is None and member.instance_id is None:
                group.remove(member.member_id)
                self.expect_nothing(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none of them came back: sessions will decide.
            self._await_all(group)
            return
        group.begin_generation(state.shard.clock())
        if group.phase is Phase.EMPTY:
            _logger.info("%s is empty in generation %d", group.group_id, group.generation)
            state.shard.write_unasked([group_record(group, {})])
            return
        everybody = self.members_for_leader(group)
        for member in tuple(group.members.values()):
            is_leader = member.member_id == group.leader
            group.answer_join(member, self.joined(group, member, everybody if is_leader else ()))
            self.expect_heartbeat(group, member)
            member.is_new = False
            group.unsynced.add(member.member_id)
        self._timers.set(
            (group.group_id, _SYNC),
            group.rebalance_timeout_ms,
            partial(self._sync_is_over, group, group.generation),
        )

    def joined(
        self, group: ClassicGroup, member: Member, members: tuple[JoinGroupResponseMember, ...]
    ) -> JoinGroupResponse:
        """What a member is told of a generation; its leader also who the members are."""
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=members,
        )

    def members_for_leader(self, group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
        return tuple(
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata(group.protocol),
            )
            for each in group.members.values()
        )

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """The leader's decision is in the log."""
        for member in group.members.values():
            member.assignment = assignments[member.member_id]
            told = SyncGroupResponse(
                protocol_type=group.type,
                protocol_name=group.protocol,
                assignment=member.assignment,
            )
            if group.answer_sync(member, told):
                self.expect_heartbeat(group, member)
        group.enter(Phase.STABLE, self._state.shard.clock())
        self._state.counts.rebalances += 1

    def refuse_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if group.answer_sync(member, SyncGroupResponse(error_code=error)):
                self.expect_heartbeat(group, member)

    def has_synced(self, group: ClassicGroup, member_id: str) -> None:
        group.unsynced.discard(member_id)
        if not group.unsynced:
            self._timers.cancel((group.group_id, _SYNC))

    def drop(self, group: ClassicGroup, member: Member) -> None:
        """A member goes; if it waits for something it is told that it is none."""
        error = ErrorCode.UNKNOWN_MEMBER_ID
        group.answer_join(member, JoinGroupResponse(error_code=error, protocol_name=None))
        group.answer_sync(member, SyncGroupResponse(error_code=error))
        group.remove(member.member_id)

    def _expect(self, group: ClassicGroup, member_id: str, ms: int) -> None:
        self._timers.set(
            (group.group_id, "", member_id), ms, partial(self._session_is_over, group, member_id)
        )

    def _await_all(self, group: ClassicGroup) -> None:
        self._timers.set(
            (group.group_id, _JOIN),
            group.rebalance_timeout_ms,
            partial(self.complete_join, group),
        )

    def _wait(self, group: ClassicGroup, delay: int, remaining: int) -> None:
        self._timers.set(
            (group.group_id, _JOIN), delay, partial(self._waited, group, delay, remaining)
        )

    def _waited(self, group: ClassicGroup, delay: int, remaining: int) -> None:
        """The first generation waits as long as somebody new keeps coming, and there is time."""
        if group.has_newcomer and remaining:
            group.has_newcomer = False
            self._wait(group, min(self._initial_delay_ms, remaining), max(remaining - delay, 0))
        else:
            self.complete_join(group)

    def _session_is_over(self, group: ClassicGroup, member_id: str) -> None:
        if group.phase is Phase.DEAD:
            return
        if member_id in group.pending:
            group.remove(member_id)
            if group.phase is Phase.PREPARING and group.have_all_joined:
                self.complete_join(group)
            return
        member = group.members.get(member_id)
        if member is None or member.is_alive:
            return
        _logger.info("%s: nothing was heard of %s in time", group.group_id, member_id)
        self.drop(group, member)
        if group.phase in (Phase.STABLE, Phase.COMPLETING):
            self.rebalance(group, f"{member_id} is gone")
        elif group.phase is Phase.PREPARING and group.have_all_joined:
            self.complete_join(group)

    def _sync_is_over(self, group: ClassicGroup, generation: int) -> None:
        if generation != group.generation or not group.unsynced:
            return
        if group.phase in (Phase.COMPLETING, Phase.STABLE):
            for member_id in tuple(group.unsynced):
                group.remove(member_id)
                self.expect_nothing(group, member_id)
            self.prepare(group, "members did not ask for their assignments in time")
