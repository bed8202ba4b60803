"""A heartbeat of a member of the new protocol: it joins, says what it wants or has, or lives on."""

from __future__ import annotations

from typing import Final

from kraftline.broker.coordinators.groups.consumer import records, updating
from kraftline.broker.coordinators.groups.consumer.deciding import Caller, Ground, Step
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.member import (
    AWAY,
    JOINING,
    LEAVING,
    Member,
    Owned,
    changed,
)
from kraftline.broker.coordinators.groups.consumer.reconciling import Held
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.groups.consumer.updating import RegexChange
from kraftline.broker.coordinators.state import Change
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kraftline.schema.api.error_codes import ErrorCode

_MUST_REJOIN: Final = "The member must abandon all its partitions and rejoin."


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, settings: Settings) -> None:
    """What is wrong with it whatever the group is, as a Refusal."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVING:
        _not_blank(request.member_id, "MemberId")
    _not_blank(request.group_id, "GroupId")
    _not_blank(request.instance_id, "InstanceId")
    _not_blank(request.rack_id, "RackId")
    if epoch == JOINING:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == AWAY:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < AWAY:
        raise _invalid("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.assignors:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: "
            f"{', '.join(settings.assignors)}.",
        )


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    caller: Caller,
    ground: Ground,
    changes: list[Change],
) -> Step:
    """What it comes to; `changes` are those that have made the group ready for it."""
    held = _held(request)
    before = _member_of(group, request, member_id, held, changes)
    member = changed(
        before,
        instance_id=_or(request.instance_id, before.instance_id),
        rack_id=_or(request.rack_id, before.rack_id),
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        assignor=_or(request.server_assignor, before.assignor),
        topics=before.topics
        if request.subscribed_topic_names is None
        else frozenset(request.subscribed_topic_names),
        regex=_or(request.subscribed_topic_regex, before.regex),
        client_id=caller.client_id,
        client_host=caller.host,
        classic=None,
    )
    step = Step(before, member, changes)
    has_other_topics = updating.note_subscription(group, step)
    regex = updating.note_regex(group, step, ground)
    must = has_other_topics or regex is RegexChange.RESOLVED
    epoch, is_even = group.epoch, True
    if must or group.seen is not ground.image.topics:
        epoch, is_even = updating.raise_epoch(group, step, ground, must=must)
    elif group.assignment_epoch < epoch:
        is_even = group.subscriptions.is_even(len(group.members))
    target_epoch, target = updating.retarget(group, step, ground, epoch, is_even=is_even)
    updating.reconcile(
        group,
        step,
        ground,
        target_epoch,
        target,
        has_subscription_changed=has_other_topics or regex is not RegexChange.NONE,
        held=held,
    )
    return step


def response(
    step: Step, request: ConsumerGroupHeartbeatRequest, interval_ms: int
) -> ConsumerGroupHeartbeatResponse:
    """The assignment is told when it has changed, and to whom says everything anew."""
    is_full = (
        request.rebalance_timeout_ms != -1
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
    member = step.member
    assignment = None
    if request.member_epoch == JOINING or is_full or member.assigned != step.before.assigned:
        assignment = Assignment(
            topic_partitions=tuple(
                ConsumerGroupHeartbeatResponseTopicPartitions(
                    topic_id=topic, partitions=tuple(sorted(partitions))
                )
                for topic, partitions in member.assigned.items()
            )
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def check_size(group: ConsumerGroup, member_id: str, settings: Settings) -> None:
    if len(group.members) >= settings.max_size and member_id not in group.members:
        raise Refusal(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {settings.max_size} members.",
        )


def check_instance(member: Member, member_id: str, instance_id: str) -> None:
    """Another member that says the same instance id is fenced."""
    if member.member_id != member_id:
        raise Refusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )


def known_static(group: ConsumerGroup, instance_id: str) -> Member:
    found = group.static_member(instance_id)
    if found is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return found


def replaced(group: ConsumerGroup, old: Member, member_id: str, changes: list[Change]) -> Member:
    """A static member that is back under another id, with all that the one before it had."""
    new = changed(old, member_id=member_id, epoch=JOINING, previous_epoch=0)
    id = group.group_id
    changes += records.without_member(id, old.member_id)
    changes.append(records.member(id, new))
    changes.append(records.target(id, member_id, group.target(old.member_id)))
    changes.append(records.current(id, new))
    return new


def _member_of(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    held: Held,
    changes: list[Change],
) -> Member:
    joins = request.member_epoch == JOINING
    instance_id = request.instance_id
    if instance_id is None:
        found = group.members.get(member_id) if joins else group.member(member_id)
        member = found or Member(member_id)
        _check_epoch(member, request.member_epoch, held)
        return member
    if not joins:
        member = known_static(group, instance_id)
        check_instance(member, member_id, instance_id)
        _check_epoch(member, request.member_epoch, held)
        return member
    old = group.static_member(instance_id)
    if old is None:
        return group.members.get(member_id) or Member(member_id)
    if not old.is_classic and old.epoch != AWAY:
        raise Refusal(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {old.member_id} member.",
        )
    return replaced(group, old, member_id, changes)


def _check_epoch(member: Member, epoch: int, held: Held) -> None:
    """The one before will do for a member that did not hear of its new one and has nothing more
    than that gives it."""
    if epoch in (JOINING, member.epoch):
        return
    if epoch > member.epoch:
        said = "greater"
    elif epoch == member.previous_epoch and _is_within(held, member.assigned):
        return
    else:
        said = "smaller"
    raise Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {said} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). {_MUST_REJOIN}",
    )


def _is_within(held: Held, owned: Owned) -> bool:
    if held is None:
        return False
    return all(
        topic in owned and all(each in owned[topic] for each in partitions)
        for topic, partitions in held
    )


def _held(request: ConsumerGroupHeartbeatRequest) -> Held:
    if request.topic_partitions is None:
        return None
    return [(each.topic_id, each.partitions) for each in request.topic_partitions]


def _or(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def _not_blank(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
