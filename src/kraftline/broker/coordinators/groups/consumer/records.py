"""The records of consumer groups: types 3 to 8 and 16 of `__consumer_offsets`."""

from __future__ import annotations

from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned
from kraftline.broker.coordinators.groups.consumer.member import Member, Owned
from kraftline.broker.coordinators.groups.consumer.subscriptions import Resolved
from kraftline.broker.coordinators.state import Change
from kraftline.schema.coordinator.group.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from kraftline.schema.coordinator.group.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from kraftline.schema.coordinator.group.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
)
from kraftline.schema.coordinator.group.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from kraftline.schema.coordinator.group.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kraftline.schema.coordinator.group.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Change:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Change(ConsumerGroupMetadataKey(group_id=group_id), value)


def no_group(group_id: str) -> Change:
    return Change(ConsumerGroupMetadataKey(group_id=group_id), None)


def no_partition_metadata(group_id: str) -> Change:
    """Releases before 4.1 wrote what this deletes; the hash has come in its place."""
    return Change(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member(group_id: str, member: Member) -> Change:
    """Who it is and what it subscribes to."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return Change(key, value)


def no_member(group_id: str, member_id: str) -> Change:
    return Change(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int, assigned_at: int) -> Change:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=assigned_at
    )
    return Change(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def no_target_epoch(group_id: str) -> Change:
    return Change(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target(group_id: str, member_id: str, assigned: Assigned) -> Change:
    """What a member is to have in the end."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic, partitions=tuple(sorted(partitions)))
            for topic, partitions in assigned.items()
        )
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return Change(key, value)


def no_target(group_id: str, member_id: str) -> Change:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return Change(key, None)


def current(group_id: str, member: Member) -> Change:
    """What a member has now."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_topics(member.assigned),
        partitions_pending_revocation=_topics(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return Change(key, value)


def no_current(group_id: str, member_id: str) -> Change:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return Change(key, None)


def regex(group_id: str, text: str, resolved: Resolved) -> Change:
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)),
        version=resolved.version,
        timestamp=resolved.resolved_at,
    )
    return Change(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=text), value
    )


def no_regex(group_id: str, text: str) -> Change:
    return Change(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=text), None
    )


def without_member(group_id: str, member_id: str) -> list[Change]:
    """All that is known of a member goes."""
    return [
        no_current(group_id, member_id),
        no_target(group_id, member_id),
        no_member(group_id, member_id),
    ]


def _topics(owned: Owned) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(
            topic_id=topic,
            partitions=tuple(sorted(epochs)),
            assignment_epochs=tuple(epochs[each] for each in sorted(epochs)),
        )
        for topic, epochs in owned.items()
    )
