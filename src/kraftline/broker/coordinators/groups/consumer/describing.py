"""A consumer group, as it is told to those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.member import Member as GroupMember
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kraftline.schema.uuids import Uuid


def described(group: ConsumerGroup, settings: Settings, topics: TopicsImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or settings.assignors[0],
        members=tuple(_member(each, group, topics) for each in group.members.values()),
    )


def _member(member: GroupMember, group: ConsumerGroup, topics: TopicsImage) -> Member:
    owned: dict[Uuid, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic, partitions in part.items():
            owned.setdefault(topic, []).extend(sorted(partitions))
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=0 if member.is_classic else 1,
    )


def _assignment(owned: Mapping[Uuid, Iterable[int]], topics: TopicsImage) -> Assignment:
    """Topics that are gone are left out."""
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic, topic_name=known.name, partitions=tuple(partitions))
            for topic, partitions in owned.items()
            if (known := topics.by_id.get(topic)) is not None
        )
    )
