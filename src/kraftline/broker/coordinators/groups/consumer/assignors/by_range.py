"""`range`: each topic is cut into ranges of equal length, one for each member in the order of their
instance ids and then member ids; so partitions of the same number go to the same member."""

from __future__ import annotations

from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task, Wish
from kraftline.schema.uuids import Uuid


def assign(task: Task) -> dict[str, Assigned]:
    members = sorted(task.members.items(), key=_rank)
    subscribers: dict[Uuid, int] = {}
    if task.is_even and members:
        # All count for every topic that the first has.
        topics = members[0][1].topics
        subscribers = dict.fromkeys(topics, len(members))
    else:
        topics = None
        for _, wish in members:
            for topic in wish.topics:
                subscribers[topic] = subscribers.get(topic, 0) + 1
    cuts = {topic: _Cut(task.partitions[topic], count) for topic, count in subscribers.items()}
    found: dict[str, Assigned] = {}
    for member, wish in members:
        assigned = {}
        for topic in wish.topics if topics is None else topics:
            part = cuts[topic].next()
            if part:
                assigned[topic] = frozenset(part)
        found[member] = assigned
    return found


def _rank(member: tuple[str, Wish]) -> tuple[bool, bytes]:
    id, wish = member
    instance = wish.instance_id
    # Java compares texts by UTF-16 units.
    return instance is None, (instance or id).encode("utf-16-be", "surrogatepass")


class _Cut:
    """A topic, as its ranges are given out; the first ones are longer by one where it must be."""

    __slots__ = ("_begin", "_end", "_extra", "_length")

    def __init__(self, partitions: int, members: int) -> None:
        self._begin = 0
        self._end = partitions
        self._length, self._extra = divmod(partitions, members)

    def next(self) -> range:
        begin = self._begin
        length = self._length
        if self._extra:
            self._extra -= 1
            length += 1
        self._begin = min(begin + length, self._end)
        return range(begin, self._begin)
