"""Groups with members that go from one protocol to the other while they run.

Up: the first member of the new protocol joins a classic group of consumers. Those of the classic
protocol stay, and are told by JoinGroup and SyncGroup what the coordinator assigns. Down: the last
member of the new protocol goes, or comes back as one of the classic protocol.
"""

from __future__ import annotations

from collections.abc import Collection

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.member import Member as ClassicMember
from kraftline.broker.coordinators.groups.classic.protocols import CONSUMER
from kraftline.broker.coordinators.groups.classic.records import group_record
from kraftline.broker.coordinators.groups.consumer import records
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned
from kraftline.broker.coordinators.groups.consumer.deciding import Ground
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.member import Member
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.errors import BadData
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.join_group import JoinGroupRequestProtocol
from kraftline.schema.coordinator.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)
from kraftline.schema.coordinator.embedded import (
    decode_assignment,
    decode_subscription,
    encode_embedded,
)
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
)


def check_upgrade(group: ClassicGroup, settings: Settings) -> None:
    """May it become a group of the new protocol, with the members that it has?"""
    cannot = f"Cannot upgrade classic group {group.group_id} to consumer group because"
    if not settings.migration.is_upgrade:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"{cannot} online upgrade is disabled.")
    if group.type != CONSUMER:
        raise Refusal(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"{cannot} the group does not use the consumer embedded protocol.",
        )
    if len(group.members) > settings.max_size:
        raise Refusal(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"{cannot} the group size exceeds the consumer group maximum size.",
        )


def upgraded(group: ClassicGroup, ground: Ground) -> tuple[ConsumerGroup, list[Change]]:
    """The group as it will be, and the records that make it so."""
    id = group.group_id
    epoch = group.generation
    if group.protocol is None:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)  # nobody knows yet what it reads
    try:
        moved = [
            _consumer(each, group.protocol, epoch, ground.image.topics)
            for each in group.members.values()
        ]
    except BadData as problem:
        raise Refusal(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {id} to consumer group because the embedded consumer "
            "protocol is malformed.",
        ) from problem
    except _OwnData as problem:
        raise Refusal(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {id} to consumer group because an unsupported custom "
            "assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade.",
        ) from problem
    names = frozenset[str]().union(*(each.topics for each in moved))
    changes = [
        *(records.member(id, each) for each in moved),
        records.group_epoch(id, epoch, ground.hashes.of(names, ground.image)),
        *(records.target(id, each.member_id, _without_epochs(each)) for each in moved),
        records.target_epoch(id, epoch, 0),
        *(records.current(id, each) for each in moved),
    ]
    made = ConsumerGroup(id)
    for change in changes:
        made.replay(change.key, change.value)
    return made, [*group.tombstones(), *changes]


def is_downgrade(
    group: ConsumerGroup,
    settings: Settings,
    leaving: Collection[Member] = (),
    *,
    back: Member | None = None,
) -> bool:
    """Are there only members of the classic protocol once these have left, or this one is back as
    one of them?"""
    if back is not None:
        left = [each for each in group.members.values() if each.member_id != back.member_id]
        size = len(left) + 1
        if back.is_classic:
            return False
    else:
        gone = {each.member_id for each in leaving}
        left = [each for each in group.members.values() if each.member_id not in gone]
        size = len(left)
    return (
        size > 0
        and all(each.is_classic for each in left)
        and settings.migration.is_downgrade
        and size <= settings.classic_max_size
    )


def downgraded(
    group: ConsumerGroup,
    ground: Ground,
    leaving: Collection[Member] = (),
    joining: Member | None = None,
) -> tuple[ClassicGroup, list[Change]]:
    """The classic group as it will be, and the records that make it so. `joining` is a static
    member that takes the place of one of the new protocol."""
    gone = {each.member_id for each in leaving}
    ids = tuple(group.members)
    old = group.static_member(joining.instance_id) if joining is not None else None
    if joining is not None and old is not None:
        gone.add(old.member_id)
        ids = tuple(joining.member_id if each == old.member_id else each for each in ids)
    made = ClassicGroup(group.group_id, ground.now, Phase.STABLE, group.epoch, CONSUMER)
    staying = [each for each in group.members.values() if each.member_id not in gone]
    for each in (*staying, *(() if joining is None else (joining,))):
        made.add(_classic(each), CONSUMER)
    made.protocol = made.next_protocol()
    assignments = {}
    for member in made.members.values():
        of = member.member_id
        if joining is not None and old is not None and of == joining.member_id:
            of = old.member_id
        try:
            _, version = decode_subscription(member.metadata(made.protocol))
        except BadData as problem:
            raise Refusal(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: {problem}.",
            ) from problem
        assignments[member.member_id] = embedded(group.target(of), version, ground.image.topics)
    return made, [*group.tombstones_of(ids), group_record(made, assignments)]


def embedded(assigned: Assigned, version: int, topics: TopicsImage) -> bytes:
    """An assignment as members of the classic protocol read it."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            ConsumerProtocolAssignmentTopicPartition(
                topic=known.name, partitions=tuple(sorted(partitions))
            )
            for topic, partitions in assigned.items()
            if (known := topics.by_id.get(topic)) is not None
        )
    )
    return encode_embedded(message, min(version, _NEWEST))


class _OwnData(Exception):
    """An assignor of somebody's own has put something into the assignment."""


def _consumer(member: ClassicMember, protocol: str, epoch: int, topics: TopicsImage) -> Member:
    assigned = {}
    if member.assignment:
        assignment, _ = decode_assignment(member.assignment)
        if assignment.user_data:
            raise _OwnData
        assigned = {
            id: dict.fromkeys(each.partitions, epoch)
            for each in assignment.assigned_partitions
            if (id := topics.ids.get(each.topic)) is not None
        }
    subscription, _ = decode_subscription(member.metadata(protocol))
    return Member(
        member.member_id,
        epoch=epoch,
        previous_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned=assigned,
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=each.name, metadata=each.metadata) for each in member.protocols
            ),
        ),
    )


def _classic(member: Member) -> ClassicMember:
    classic = member.classic
    assert classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        tuple(
            JoinGroupRequestProtocol(name=each.name, metadata=each.metadata)
            for each in classic.supported_protocols
        ),
    )


def _without_epochs(member: Member) -> Assigned:
    return {topic: frozenset(each) for topic, each in member.assigned.items()}


_NEWEST = ConsumerProtocolAssignment.SPEC.versions.last
