"""Members of the classic protocol in a group of the new one: what they ask, and what they are told.

A JoinGroup is a heartbeat that says everything, answered at once: nobody waits for the others. The
generation is the member's epoch. By SyncGroup it is told what it may read, by Heartbeat that it has
to join again.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.coordinators.groups.classic.joining import Joiner
from kraftline.broker.coordinators.groups.classic.protocols import CONSUMER
from kraftline.broker.coordinators.groups.consumer import updating
from kraftline.broker.coordinators.groups.consumer.deciding import Ground, Step
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.heartbeat import (
    check_instance,
    known_static,
    replaced,
)
from kraftline.broker.coordinators.groups.consumer.member import Member, MemberState, changed
from kraftline.broker.coordinators.groups.consumer.moves import embedded, is_downgrade
from kraftline.broker.coordinators.groups.consumer.settings import Migration, Settings
from kraftline.broker.coordinators.groups.consumer.updating import RegexChange
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.errors import BadData
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.join_group import JoinGroupRequest, JoinGroupResponse
from kraftline.schema.api.sync_group import SyncGroupRequest
from kraftline.schema.coordinator.consumer_protocol import ConsumerProtocolSubscription
from kraftline.schema.coordinator.embedded import decode_subscription
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from kraftline.schema.uuids import Uuid

_KNOWN_ID: Final = 4


def check_join(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, settings: Settings
) -> None:
    if settings.migration is Migration.DISABLED:
        raise Refusal(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            "the group migration is disabled.",
        )
    if len(group.members) >= settings.max_size and member_id not in group.members:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, None)
    if not _supports(group, request):
        raise Refusal(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member_id}'s protocols are not supported.",
        )


def must_know_its_id(joiner: Joiner) -> bool:
    request = joiner.request
    return (
        joiner.version >= _KNOWN_ID and not request.member_id and request.group_instance_id is None
    )


def join(
    group: ConsumerGroup, joiner: Joiner, member_id: str, ground: Ground
) -> tuple[Step, bool, int | None]:
    """The member's step; whether the group goes down to the classic protocol with it, and to which
    epoch it has risen before that."""
    request = joiner.request
    changes: list[Change] = []
    instance_id = request.group_instance_id
    if instance_id is None:
        before = group.members.get(member_id) or Member(member_id)
        old = None
    else:
        old = group.static_member(instance_id)
        if request.member_id:
            before = known_static(group, instance_id)
            check_instance(before, member_id, instance_id)
        elif old is None:
            before = group.members.get(member_id) or Member(member_id)
        else:
            before = replaced(group, old, member_id, changes)
    goes_down = old is not None and is_downgrade(group, ground.settings, back=old)
    subscription = subscription_of(request)
    member = changed(
        before,
        instance_id=instance_id if instance_id is not None else before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if joiner.rebalance_timeout_ms == -1
        else joiner.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=joiner.client_id or "",
        client_host=joiner.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=each.name, metadata=each.metadata)
                for each in request.protocols
            ),
        ),
    )
    step = Step(before, member, changes)
    has_other_topics = updating.note_subscription(group, step)
    regex = updating.note_regex(group, step, ground)
    must = has_other_topics or regex is not RegexChange.NONE
    epoch, is_even = group.epoch, True
    if must or group.seen is not ground.image.topics:
        epoch, is_even = updating.raise_epoch(group, step, ground, must=must)
    elif group.assignment_epoch < epoch:
        is_even = group.subscriptions.is_even(len(group.members))
    held = _held(subscription, ground.image.topics)
    if goes_down and group.assignment_epoch < epoch:
        return step, True, epoch
    if goes_down:
        target_epoch, target = group.assignment_epoch, group.target_of(member)
    else:
        target_epoch, target = updating.retarget(group, step, ground, epoch, is_even=is_even)
    updating.reconcile(
        group, step, ground, target_epoch, target, has_subscription_changed=must, held=held
    )
    return step, goes_down, None


def joined(member: Member) -> JoinGroupResponse:
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=member.protocols[0].name,
    )


def member_of(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> Member:
    """Who asks, if it is of the classic protocol and of this generation."""
    instance_id = request.group_instance_id
    if instance_id is None:
        member = group.member(request.member_id)
    else:
        found = group.static_member(instance_id)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
        check_instance(found, request.member_id, instance_id)
        member = found
    if not member.is_classic:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, None)
    if member.epoch != request.generation_id:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, None)
    return member


def check_protocol(member: Member, request: SyncGroupRequest) -> None:
    if request.protocol_type not in (None, CONSUMER):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)
    if request.protocol_name not in (None, member.protocols[0].name):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)


def assignment_of(member: Member, topics: TopicsImage) -> bytes:
    """What it may read, in the version in which it told what it wants to."""
    version = int.from_bytes(member.protocols[0].metadata[:2], "big", signed=True)
    assigned = {topic: frozenset(each) for topic, each in member.assigned.items()}
    return embedded(assigned, version, topics)


def must_sync_later(group: ConsumerGroup, member: Member) -> bool:
    """There is a new target that it has not joined for yet."""
    return (
        group.assignment_epoch > member.epoch
        and member.state is not MemberState.UNREVOKED_PARTITIONS
    )


def must_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Is there something that it gets to know by joining again?"""
    return (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (
            member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
        )
    )


def subscription_of(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        subscription, _ = decode_subscription(request.protocols[0].metadata)
    except BadData as problem:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None) from problem
    return subscription


def _supports(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    if request.protocol_type != CONSUMER:
        return False
    if not group.members:
        return bool(request.protocols)
    classic = [each for each in group.members.values() if each.is_classic]
    return any(
        all(any(each.name == asked.name for each in member.protocols) for member in classic)
        for asked in request.protocols
    )


def _held(
    subscription: ConsumerProtocolSubscription, topics: TopicsImage
) -> list[tuple[Uuid, tuple[int, ...]]]:
    return [
        (id, each.partitions)
        for each in subscription.owned_partitions
        if (id := topics.ids.get(each.topic)) is not None
    ]
