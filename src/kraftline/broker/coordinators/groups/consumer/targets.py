"""A new target for a group: what each member is to have, and the records that say so."""

from __future__ import annotations

from collections.abc import Mapping

from kraftline.broker.coordinators.groups.consumer import records
from kraftline.broker.coordinators.groups.consumer.assignors.java_sets import in_member_order
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task, Wish
from kraftline.broker.coordinators.groups.consumer.group import NOTHING, ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.member import Member
from kraftline.broker.coordinators.groups.consumer.subscriptions import topics_of
from kraftline.broker.coordinators.state import Change
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.uuids import Uuid


def may_assign(assigned_at: int, interval_ms: int, now: int) -> bool:
    """Targets follow one another at some distance: who joins meanwhile waits for the next."""
    return assigned_at == 0 or interval_ms == 0 or now >= assigned_at + interval_ms


def task_of(group: ConsumerGroup, member: Member, *, is_even: bool, topics: TopicsImage) -> Task:
    """What is to be assigned, with `member` as it will be, in the place of an earlier one of its
    instance."""
    ids: dict[frozenset[str], frozenset[Uuid]] = {}
    before = group.statics.get(member.instance_id) if member.instance_id is not None else None
    wishes: dict[str, Wish] = {}
    for each in group.members.values():
        wishes[each.member_id] = _wish(each, group.target(each.member_id), group, topics, ids)
    inherited = group.target(member.member_id)
    if before is not None and before != member.member_id:
        inherited = group.target(before)
        wishes.pop(before, None)
    wishes[member.member_id] = _wish(member, inherited, group, topics, ids)
    return Task(wishes, _counts(ids, topics), group.taken, is_even)


def weight(task: Task) -> int:
    """About how long it takes: what all members subscribe to, and all partitions."""
    return sum(len(each.topics) for each in task.members.values()) + sum(task.partitions.values())


def by_itself(task: Task) -> Task:
    """The same, whatever becomes of the group meanwhile."""
    taken = {topic: frozenset(partitions) for topic, partitions in task.taken.items()}
    return Task(task.members, task.partitions, taken, task.is_even)


def target_records(
    group: ConsumerGroup, task: Task, found: Mapping[str, Assigned], epoch: int, now: int
) -> list[Change]:
    """What an assignor has found, in records: of those members whose target is another."""
    changes = []
    for member_id in in_member_order(task.members):
        new = found.get(member_id, NOTHING)
        if new != group.targets.get(member_id):
            changes.append(records.target(group.group_id, member_id, new))
    changes.append(records.target_epoch(group.group_id, epoch, now))
    return changes


def _wish(
    member: Member,
    target: Assigned,
    group: ConsumerGroup,
    topics: TopicsImage,
    ids: dict[frozenset[str], frozenset[Uuid]],
) -> Wish:
    names = topics_of(member, group.resolved)
    wanted = ids.get(names)
    if wanted is None:  # most members subscribe to the same topics
        wanted = frozenset(id for name in names if (id := topics.ids.get(name)) is not None)
        ids[names] = wanted
    return Wish(wanted, target, member.instance_id)


def _counts(ids: Mapping[frozenset[str], frozenset[Uuid]], topics: TopicsImage) -> dict[Uuid, int]:
    return {id: len(topics.by_id[id].partitions) for id in frozenset().union(*ids.values())}
