"""Members go: they say so, nothing was heard of them, or they are put out."""

from __future__ import annotations

from collections.abc import Collection

from kraftline.broker.coordinators.groups.consumer import records
from kraftline.broker.coordinators.groups.consumer.deciding import Ground
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.heartbeat import check_instance, known_static
from kraftline.broker.coordinators.groups.consumer.member import AWAY, Member, changed
from kraftline.broker.coordinators.state import Change
from kraftline.schema.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def leaver(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Member:
    """Who says that it leaves."""
    if request.instance_id is None:
        return group.member(request.member_id)
    member = known_static(group, request.instance_id)
    check_instance(member, request.member_id, request.instance_id)
    return member


def step_aside(group: ConsumerGroup, member: Member) -> list[Change]:
    """A static member will be back: it keeps what it has."""
    away = changed(
        member,
        epoch=AWAY,
        revoking={},
        # Whoever comes back in its place may commit for them in any epoch.
        assigned={topic: dict.fromkeys(each, 0) for topic, each in member.assigned.items()},
    )
    return [records.current(group.group_id, away)]


def removed(group: ConsumerGroup, members: Collection[Member], ground: Ground) -> list[Change]:
    """The records without them: their partitions are free, and the group has a new epoch."""
    id = group.group_id
    changes = []
    together = group.subscriptions.copy()
    for member in members:
        changes += records.without_member(id, member.member_id)
        together.remove_member(member)
    for regex in group.subscriptions.regexes:
        if regex not in together.regexes:
            changes.append(records.no_regex(id, regex))
            matched = group.resolved.get(regex)
            if matched is not None:
                together.add_matches(matched.topics, -1)
    hashed = ground.hashes.of(together.topics, ground.image)
    changes.append(records.group_epoch(id, group.epoch + 1, hashed))
    return changes
