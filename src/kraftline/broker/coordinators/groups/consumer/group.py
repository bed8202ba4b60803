"""A consumer group, as its records say. It changes by `replay` of these and by nothing else."""

from __future__ import annotations

from typing import Any, Final

from kraftline.broker.coordinators.groups.consumer import records
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned
from kraftline.broker.coordinators.groups.consumer.member import (
    LEAVING,
    Member,
    MemberState,
    Owned,
    changed,
    with_assignment,
    with_metadata,
)
from kraftline.broker.coordinators.groups.consumer.subscriptions import Resolved, Subscriptions
from kraftline.broker.coordinators.groups.group import CheckPartition, Kind, Since
from kraftline.broker.coordinators.state import Change
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.group.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraftline.schema.coordinator.group.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
)
from kraftline.schema.coordinator.group.consumer_group_metadata import ConsumerGroupMetadataKey
from kraftline.schema.coordinator.group.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
)
from kraftline.schema.coordinator.group.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
)
from kraftline.schema.coordinator.group.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kraftline.schema.coordinator.group.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid

CONSUMER_GROUP_KEYS: Final[tuple[type[Message], ...]] = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
NOTHING: Final[Assigned] = {}
# The first version of OffsetCommit that knows epochs of members.
_COMMIT_WITH_EPOCH: Final = 9


class ConsumerGroup:
    """`targets` is what each member is to have in the end, `taken` the same by partition.
    `partition_epochs` has the partitions that members own or have not given up yet.

    `seen` is not from records: the topics whose hash the group was last compared with."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assigned_at = 0
        self.members: dict[str, Member] = {}
        self.statics: dict[str, str] = {}
        self.targets: dict[str, Assigned] = {}
        self.taken: dict[Uuid, dict[int, str]] = {}
        self.partition_epochs: dict[Uuid, dict[int, int]] = {}
        self.subscriptions = Subscriptions()
        self.resolved: dict[str, Resolved] = {}
        self.has_partition_metadata = False
        self.seen: TopicsImage | None = None

    # What every group is.

    @property
    def kind(self) -> Kind:
        return Kind.CONSUMER

    @property
    def state(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.assignment_epoch:
            return ASSIGNING
        if all(each.is_reconciled(self.assignment_epoch) for each in self.members.values()):
            return STABLE
        return RECONCILING

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def size(self) -> int:
        return len(self.members)

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CheckPartition | None:
        epoch = generation_or_epoch
        if epoch < 0 and not self.members:
            return None  # the admin client, or a consumer without a group's protocol
        if is_transactional and epoch == -1 and member_id == "" and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and not member.is_classic and version < _COMMIT_WITH_EPOCH:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer "
                "group protocol",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise _stale(member, f"{epoch} is newer than current member epoch {member.epoch}.")
        return _commits_of(member, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch == member.epoch:
            return
        said = "generation id" if member.is_classic else "member epoch"
        raise Refusal(
            ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH,
            f"The received {said} {epoch} does not match the expected member epoch {member.epoch}.",
        )

    def check_offset_delete(self) -> None:
        """Always, of topics that nobody subscribes to."""

    def check_delete(self) -> None:
        if self.members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscriptions.topics

    def since(self) -> Since | None:
        return lambda committed: committed.committed_at

    def tombstones(self) -> list[Change]:
        return self.tombstones_of(tuple(self.members))

    def tombstones_of(self, members: tuple[str, ...]) -> list[Change]:
        """The records that delete the group, where its members are known by these ids."""
        id = self.group_id
        return [
            *(records.no_current(id, each) for each in members),
            *(records.no_target(id, each) for each in members),
            records.no_target_epoch(id),
            *(records.no_member(id, each) for each in members),
            *(records.no_regex(id, each) for each in self.resolved),
            records.no_partition_metadata(id),
            records.no_group(id),
        ]

    def close(self) -> None:
        """Nobody waits here, and deadlines are the members'."""

    # What is asked by those who decide.

    def member(self, member_id: str) -> Member:
        found = self.members.get(member_id)
        if found is None:
            raise Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def static_member(self, instance_id: str | None) -> Member | None:
        if instance_id is None:
            return None
        member_id = self.statics.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def target(self, member_id: str) -> Assigned:
        return self.targets.get(member_id, NOTHING)

    def target_of(self, member: Member) -> Assigned:
        """A static member inherits from the one before it of the same instance."""
        if member.instance_id is None:
            return self.target(member.member_id)
        before = self.statics.get(member.instance_id)
        return NOTHING if before is None else self.target(before)

    def is_owned(self, topic: Uuid, partition: int) -> bool:
        return partition in self.partition_epochs.get(topic, ())

    @property
    def classic_members(self) -> int:
        return sum(1 for each in self.members.values() if each.is_classic)

    def preferred_assignor(
        self, old: Member | None = None, new: Member | None = None
    ) -> str | None:
        """What most members ask for, with `new` in the place of `old`."""
        counts: dict[str, int] = {}
        for each in self.members.values():
            if each.assignor is not None:
                counts[each.assignor] = counts.get(each.assignor, 0) + 1
        if old is not None and old.assignor is not None:
            counts[old.assignor] = counts.get(old.assignor, 0) - 1
        if new is not None and new.assignor is not None:
            counts[new.assignor] = counts.get(new.assignor, 0) + 1
        # Where it is a draw, the first in the order of Kafka's map.
        wanted = in_string_order(name for name, count in counts.items() if count > 0)
        return max(wanted, key=lambda name: counts[name]) if wanted else None

    def waits_for_others(self, member: Member) -> bool:
        """Has somebody else still got a partition of its target?"""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic, ()) and self.is_owned(topic, partition)
            for topic, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    # Replay.

    def replay(self, key: Message, value: Any) -> bool:
        """Whether the group is still there."""
        match key:
            case ConsumerGroupMetadataKey():
                if value is None:
                    return False
                self.epoch = value.epoch
                self.metadata_hash = value.metadata_hash
            case ConsumerGroupPartitionMetadataKey():
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey(member_id=member_id):
                if value is None:
                    self._remove(member_id)
                else:
                    self._put(with_metadata(self._known(member_id), value))
            case ConsumerGroupTargetAssignmentMetadataKey():
                self.assignment_epoch = -1 if value is None else value.assignment_epoch
                self.assigned_at = 0 if value is None else value.assignment_timestamp
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                assigned = None
                if value is not None:
                    assigned = {
                        each.topic_id: frozenset(each.partitions) for each in value.topic_partitions
                    }
                self._aim(member_id, assigned)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                if value is not None:
                    self._put(with_assignment(self._known(member_id), value))
                elif member_id in self.members:
                    self._put(
                        changed(
                            self.members[member_id],
                            epoch=LEAVING,
                            previous_epoch=LEAVING,
                            assigned={},
                            revoking={},
                        )
                    )
            case ConsumerGroupRegularExpressionKey(regular_expression=regex):
                before = self.resolved.pop(regex, None)
                if before is not None:
                    self.subscriptions.add_matches(before.topics, -1)
                if value is not None:
                    found = Resolved(frozenset(value.topics), value.version, value.timestamp)
                    self.resolved[regex] = found
                    self.subscriptions.add_matches(found.topics)
        return True

    def _known(self, member_id: str) -> Member:
        return self.members.get(member_id) or Member(member_id)

    def _put(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget(old)
        self.members[member.member_id] = member
        self.subscriptions.add_member(member)
        for owned in (member.assigned, member.revoking):
            for topic, partitions in owned.items():
                epochs = self.partition_epochs.setdefault(topic, {})
                for partition in partitions:
                    epochs[partition] = member.epoch
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id

    def _remove(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._forget(old)
        if old.instance_id is not None:
            self.statics.pop(old.instance_id, None)

    def _forget(self, member: Member) -> None:
        self.subscriptions.remove_member(member)
        self._release(member.assigned, member.epoch)
        self._release(member.revoking, member.epoch)

    def _release(self, owned: Owned, epoch: int) -> None:
        for topic, partitions in owned.items():
            epochs = self.partition_epochs.get(topic)
            if epochs is None:
                continue
            for partition in partitions:
                # Of another epoch: it is somebody else's already.
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                del self.partition_epochs[topic]

    def _aim(self, member_id: str, new: Assigned | None) -> None:
        old = self.targets.pop(member_id, NOTHING)
        for topic, partitions in old.items():
            owners = self.taken.get(topic, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.taken.pop(topic, None)
        if new is None:
            return
        self.targets[member_id] = new
        for topic, partitions in new.items():
            owners = self.taken.setdefault(topic, {})
            for partition in partitions:
                owners[partition] = member_id


def _stale(member: Member, said: str) -> Refusal:
    if member.is_classic:
        return Refusal(ErrorCode.ILLEGAL_GENERATION, f"Received generation id {said}")
    return Refusal(ErrorCode.STALE_MEMBER_EPOCH, f"Received member epoch {said}")


def _commits_of(member: Member, epoch: int) -> CheckPartition:
    """An older epoch will do for a partition that the member has had since then."""

    def check(topic: str, topic_id: Uuid, partition: int) -> None:
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, {}).get(partition)
        if since is None:
            raise Refusal(
                ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH,
                f"Partition {topic}-{partition} is not assigned or pending revocation for member.",
            )
        if epoch < since:
            said = f"{epoch} is older than assignment epoch {since} for partition"
            raise _stale(member, f"{said} {topic}-{partition}.")

    return check
