"""`uniform`: every member gets as many partitions as the others, and keeps what it had where that
can be.

Where all subscribe to the same topics that is simple: whoever has too many gives up the rest, and
what is free goes to those who have too few. Otherwise see `uneven`.
"""

from __future__ import annotations

from kraftline.broker.coordinators.groups.consumer.assignors import uneven
from kraftline.broker.coordinators.groups.consumer.assignors.java_sets import (
    in_member_order,
    in_partition_order,
    in_topic_order,
    room_of_copy,
)
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task
from kraftline.schema.uuids import Uuid


def assign(task: Task) -> dict[str, Assigned]:
    if not task.members:
        return {}
    return _even(task) if task.is_even else uneven.assign(task)


def _even(task: Task) -> dict[str, Assigned]:
    order = in_member_order(task.members)
    topics = task.members[order[0]].topics
    if not topics:
        return {}
    free: list[tuple[Uuid, int]] = []
    count = 0
    for topic in in_topic_order(topics, room=room_of_copy(len(topics))):
        partitions = task.partitions[topic]
        taken = task.taken.get(topic, ())
        free += [(topic, each) for each in range(partitions) if each not in taken]
        count += partitions
    found, unfilled = _kept(task, order, topics, count, free)
    _hand_out(found, unfilled, free)
    return found


def _kept(
    task: Task, order: list[str], topics: frozenset[Uuid], count: int, free: list[tuple[Uuid, int]]
) -> tuple[dict[str, Assigned], list[tuple[str, int]]]:
    """What each member keeps, and who may have how many more; what is given up becomes free."""
    found: dict[str, Assigned] = {}
    unfilled = []
    least, extra = divmod(count, len(order))
    for at, member in enumerate(order):
        old = task.members[member].assigned
        new: dict[Uuid, frozenset[int]] = {}
        has_extra = extra > 0
        quota = least + has_extra
        for topic in in_topic_order(old):
            if topic not in topics:
                continue
            partitions = old[topic]
            if len(partitions) > quota:
                ordered = in_partition_order(partitions)
                free += [(topic, each) for each in ordered[quota:]]
                partitions = frozenset(ordered[:quota])
            quota -= len(partitions)
            if partitions:
                new[topic] = partitions
        # One more only where it is needed, as long as enough others are left to take one.
        if quota > 0 and has_extra and len(order) - at > extra:
            quota -= 1
            has_extra = False
        if quota > 0:
            unfilled.append((member, quota))
        extra -= has_extra
        found[member] = new
    return found, unfilled


def _hand_out(
    found: dict[str, Assigned], unfilled: list[tuple[str, int]], free: list[tuple[Uuid, int]]
) -> None:
    at = 0
    for member, quota in unfilled:
        new = {topic: set(partitions) for topic, partitions in found[member].items()}
        for topic, partition in free[at : at + quota]:
            new.setdefault(topic, set()).add(partition)
        at += quota
        found[member] = {topic: frozenset(partitions) for topic, partitions in new.items()}
