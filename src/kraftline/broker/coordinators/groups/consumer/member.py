"""A member of a consumer group, as its records say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from kraftline.schema.coordinator.group.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kraftline.schema.uuids import Uuid

# Partitions by topic, each with the epoch in which the member got it.
Owned: TypeAlias = Mapping[Uuid, Mapping[int, int]]

JOINING: Final = 0
LEAVING: Final = -1
# A static member says that it will be back.
AWAY: Final = -2


class MemberState(IntEnum):
    """How far a member is on the way to its target, by Kafka's numbers."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has not yet said that it gave partitions up
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others still have
    UNKNOWN = 127


_STATES: Final = frozenset(MemberState)


class Member(msgspec.Struct, frozen=True, gc=False):
    """`assigned` are the partitions that it may read, `revoking` those that it has to give up and
    has not yet. `classic` is there for a member of the classic protocol."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    assigned: Owned = {}
    revoking: Owned = {}
    classic: ClassicMemberMetadata | None = None

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def protocols(self) -> tuple[ClassicProtocol, ...]:
        """What a member of the classic protocol can do, what it likes best first."""
        return () if self.classic is None else self.classic.supported_protocols

    def is_reconciled(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch


def changed(member: Member, **fields: object) -> Member:
    """The member with other values in some fields."""
    made: Member = msgspec.structs.replace(member, **fields)
    return made


def with_metadata(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    return changed(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_assignment(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    return changed(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in _STATES else MemberState.UNKNOWN,
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned(topics: Iterable[TopicPartitions], epoch: int) -> Owned:
    """Records of before 4.3 do not say in which epoch a partition was assigned."""
    found = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is not None and len(epochs) == len(topic.partitions):
            found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
        else:
            found[topic.topic_id] = dict.fromkeys(topic.partitions, max(epoch, 0))
    return found
