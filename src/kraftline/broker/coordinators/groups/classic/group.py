"""What a classic group knows of itself and of its members.

Its phases, and how they follow each other:

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
      ^              |     ^                |                |
      +--------------+     +----------------+----------------+

While it prepares, members join; once all have (or the time is over) the next generation begins, its
leader decides who gets what, and when the leader's decision is in the topic the group is stable.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from uuid import uuid4

from kraftline.broker.coordinators.groups.classic.member import Member, Parked
from kraftline.broker.coordinators.groups.classic.protocols import (
    CONSUMER,
    elected,
    subscribed_topics,
)
from kraftline.broker.coordinators.groups.group import CheckPartition, Group, Kind, Since
from kraftline.broker.coordinators.groups.offsets import Committed
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from kraftline.schema.api.sync_group import SyncGroupResponse
from kraftline.schema.coordinator.group.group_metadata import GroupMetadataKey


class Phase(Enum):
    """By Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup(Group):
    """`type` is what its members call their kind of protocol (None: nobody ever joined, only
    offsets are committed), `protocol` the one of it that this generation has. `since_ms` is when
    the phase began. `pending` have been told an id and have to come back with it; `unsynced`
    are members that have not asked for their assignment in this generation."""

    def __init__(
        self,
        group_id: str,
        now: int | None,
        phase: Phase = Phase.EMPTY,
        generation: int = 0,
        type: str | None = None,
        protocol: str | None = None,
        leader: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.phase = phase
        self.before = Phase.DEAD
        self.since_ms = now
        self.generation = generation
        self.type = type
        self.protocol = protocol
        self.leader = leader
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.pending: set[str] = set()
        self.unsynced: set[str] = set()
        self.topics: frozenset[str] | None = None
        self.has_newcomer = False
        self._supported: Counter[str] = Counter()
        self._joining = 0

    def __repr__(self) -> str:
        return (
            f"ClassicGroup({self.group_id}, {self.state}, generation {self.generation}, "
            f"{len(self.members)} members)"
        )

    @property
    def kind(self) -> Kind:
        return Kind.CLASSIC

    @property
    def state(self) -> str:
        return self.phase.value

    @property
    def protocol_type(self) -> str:
        return self.type or ""

    @property
    def is_empty(self) -> bool:
        return self.phase is Phase.EMPTY

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def joining(self) -> int:
        """How many members wait for the next generation."""
        return self._joining

    @property
    def have_all_joined(self) -> bool:
        return self._joining == len(self.members) and not self.pending

    @property
    def can_rebalance(self) -> bool:
        return self.phase in (Phase.STABLE, Phase.COMPLETING, Phase.EMPTY)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def new_member_id(self, client_id: str | None, instance_id: str | None) -> str:
        first = instance_id if instance_id is not None else client_id
        return f"{'null' if first is None else first}-{uuid4()}"

    def enter(self, phase: Phase, now: int) -> None:
        self.before = self.phase
        self.phase = phase
        self.since_ms = now

    def supports(self, type: str, protocols: tuple[JoinGroupRequestProtocol, ...]) -> bool:
        """Can somebody of this type, with these protocols, take part?"""
        if self.phase is Phase.EMPTY:
            return bool(type) and bool(protocols)
        if self.type != type:
            return False
        count = len(self.members)
        return any(self._supported[each.name] == count for each in protocols)

    def add(
        self, member: Member, type: str, parked: Parked[JoinGroupResponse] | None = None
    ) -> None:
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if not self.members:
            self.type = type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        member.join = parked
        if parked is not None:
            self._joining += 1
        self.pending.discard(member.member_id)

    def update(
        self,
        member: Member,
        protocols: tuple[JoinGroupRequestProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        parked: Parked[JoinGroupResponse] | None,
    ) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._joining += (parked is not None) - (member.join is not None)
        member.join = parked

    def remove(self, member_id: str) -> None:
        """A member, or one that was about to be; where it led, somebody else does."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.join is not None:
                self._joining -= 1
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)

    def replace(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """A static member came back under a new id; whoever still uses the old one is fenced."""
        old = self.members.pop(old_id)
        self.answer_join(
            old,
            JoinGroupResponse(
                error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id, protocol_name=None
            ),
        )
        self.answer_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member = Member(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        self.static[instance_id] = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """A leader that has not joined again is replaced by one who has; False: there is none."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader = member.member_id
                return True
        return False

    def next_protocol(self) -> str:
        return elected(self.members.values(), self._supported)

    def begin_generation(self, now: int) -> None:
        self.generation += 1
        self.protocol = self.next_protocol() if self.members else None
        self.learn_topics()
        self.enter(Phase.COMPLETING if self.members else Phase.EMPTY, now)
        self.unsynced.clear()

    def learn_topics(self) -> None:
        """What the members read, if they say so in a way that is known."""
        self.topics = None
        if self.type == CONSUMER:
            if not self.members:
                self.topics = frozenset()
            elif self.protocol is not None:
                self.topics = subscribed_topics(self.members.values(), self.protocol)

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        parked = member.join
        if parked is not None:
            member.join = None
            self._joining -= 1
            parked.answer(response)

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        parked = member.sync
        if parked is None:
            return False
        member.sync = None
        parked.answer(response)
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """A Refusal unless it is a member, and the one that has the instance id."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
            if known != member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, None)
        if member_id not in self.members:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CheckPartition | None:
        if self.phase is Phase.DEAD:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        if generation_or_epoch < 0 and self.phase is Phase.EMPTY:
            return None  # a tool, or a consumer that assigns partitions to itself
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            self.check_member(member_id, group_instance_id)
            if generation_or_epoch != self.generation:
                raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
        elif not is_transactional and self.phase is not Phase.EMPTY:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
        if not is_transactional and self.phase is Phase.COMPLETING:
            # It knows of the new generation, yet not what it owns in it.
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, None)
        return None

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if self.phase is Phase.DEAD:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def check_offset_delete(self) -> None:
        self.check_fetch("", -1)
        if self.phase is not Phase.EMPTY and self.type != CONSUMER:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, None)

    def check_delete(self) -> None:
        self.check_fetch("", -1)
        if self.phase is not Phase.EMPTY:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, None)

    def is_subscribed(self, topic: str) -> bool:
        if self.topics is None:
            return self.type == CONSUMER
        return topic in self.topics

    def since(self) -> Since | None:
        if self.type is None:
            return _last_commit
        if self.phase is Phase.EMPTY:
            became_empty = self.since_ms
            return _last_commit if became_empty is None else lambda committed: became_empty
        if self.type == CONSUMER and self.topics is not None and self.phase is Phase.STABLE:
            return _last_commit
        return None

    def tombstones(self) -> list[Change]:
        return [Change(GroupMetadataKey(group=self.group_id), None)]

    def close(self) -> None:
        phase, self.phase = self.phase, Phase.DEAD
        error = ErrorCode.NOT_COORDINATOR
        for member in self.members.values():
            if phase is Phase.PREPARING:
                self.answer_join(
                    member,
                    JoinGroupResponse(
                        error_code=error, member_id=member.member_id, protocol_name=None
                    ),
                )
            else:
                self.answer_sync(member, SyncGroupResponse(error_code=error))

    def _count(self, member: Member, step: int) -> None:
        for each in member.protocols:
            self._supported[each.name] += step


def _last_commit(committed: Committed) -> int:
    return committed.committed_at
