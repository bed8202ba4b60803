"""`uniform` where members subscribe to different topics.

Members keep what they had of topics that they still want; what is free goes to the subscriber with
the fewest partitions; then partitions move, topic by topic, from those who have most to those who
have least, until that changes nothing any more or enough rounds have been made.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kraftline.broker.coordinators.groups.consumer.assignors.java_sets import in_member_order
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task
from kraftline.schema.uuids import Uuid

_ROUNDS: Final = 16
_NOBODY: Final = -1


def assign(task: Task) -> dict[str, Assigned]:
    return _Assignment(task).made()


class _Assignment:
    """Members are numbers, in the order in which Kafka's map has them. `owners` has that of each
    partition of a topic, `loads` how many partitions each member has."""

    def __init__(self, task: Task) -> None:
        self._partitions = task.partitions
        self._members = in_member_order(task.members)
        self._subscribers: dict[Uuid, list[int]] = {}
        for number, member in enumerate(self._members):
            for topic in task.members[member].topics:
                self._subscribers.setdefault(topic, []).append(number)
        self._owners = {topic: [_NOBODY] * task.partitions[topic] for topic in self._subscribers}
        self._loads = [0] * len(self._members)
        for number, member in enumerate(self._members):
            wish = task.members[member]
            for topic, partitions in wish.assigned.items():
                if topic in wish.topics:
                    self._loads[number] += len(partitions)
                    for partition in partitions:
                        self._owners[topic][partition] = number

    def made(self) -> dict[str, Assigned]:
        if not self._subscribers:
            return {}
        self._hand_out()
        self._balance(topic for topic, who in self._subscribers.items() if len(who) > 1)
        found: list[dict[Uuid, set[int]]] = [{} for _ in self._members]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                found[owner].setdefault(topic, set()).add(partition)
        return {
            member: {topic: frozenset(each) for topic, each in partitions.items()}
            for member, partitions in zip(self._members, found, strict=True)
        }

    def _in_order(self, topics: Iterable[Uuid]) -> list[Uuid]:
        """Most partitions for a subscriber first, then fewest subscribers."""

        def rank(topic: Uuid) -> tuple[float, int, tuple[int, ...]]:
            subscribers = len(self._subscribers[topic])
            # Java compares ids as two signed numbers.
            return -(self._partitions[topic] / subscribers), subscribers, _HALVES.unpack(topic)

        return sorted(topics, key=rank)

    def _hand_out(self) -> None:
        """Give what nobody has to whom has least."""
        free = [topic for topic, owners in self._owners.items() if _NOBODY in owners]
        for topic in self._in_order(free):
            scale = _Scale(self._loads, self._subscribers[topic])
            for partition, owner in enumerate(self._owners[topic]):
                if owner == _NOBODY:
                    self._give(topic, partition, scale.next_least())

    def _balance(self, topics: Iterable[Uuid]) -> None:
        ordered = self._in_order(topics)
        last = -1
        for _ in range(_ROUNDS):
            for at, topic in enumerate(ordered):
                if at == last:
                    return  # all others have been looked at since something moved
                if self._balance_topic(topic) or last == -1:
                    last = at

    def _balance_topic(self, topic: Uuid) -> int:
        """How many partitions moved."""
        moved = 0
        scale = _Scale(self._loads, self._subscribers[topic])
        if scale.tilt <= 1:
            return moved
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(partition)
        while not scale.is_balanced:
            giver = scale.next_most()
            while giver != _NOBODY and not owned.get(giver):
                scale.exclude_most()
                giver = scale.next_most()
            if giver == _NOBODY:
                break
            partition = owned[giver].pop()
            taker = scale.next_least()
            if scale.is_balanced:
                break
            self._give(topic, partition, taker)
            moved += 1
        return moved

    def _give(self, topic: Uuid, partition: int, member: int) -> None:
        owner = self._owners[topic][partition]
        if owner != _NOBODY:
            self._loads[owner] -= 1
        self._owners[topic][partition] = member
        self._loads[member] += 1


class _Scale:
    """Subscribers of a topic by load: from one end those who are next to get a partition, from the
    other those who are next to lose one. All in such a range have the same load when it begins;
    `loads` changes meanwhile, which only matters beyond the ranges."""

    def __init__(self, loads: list[int], members: list[int]) -> None:
        self._loads = loads
        self._sorted = sorted(members, key=lambda each: (loads[each], each))
        lowest, highest = loads[self._sorted[0]], loads[self._sorted[-1]]
        self.tilt = highest - lowest
        # [0, _least_end) get one each; their load was _least.
        self._least = lowest - 1
        self._least_end = 0
        self._least_next = 0
        # [_most_begin, _most_end) lose one each; their load was _most.
        self._most = highest + 1
        self._most_begin = self._most_end = len(self._sorted)
        self._most_next = len(self._sorted) - 1

    @property
    def is_balanced(self) -> bool:
        return self._most - self._least <= 1

    def next_least(self) -> int:
        if self._least_next >= self._least_end:
            self._least += 1
            while (
                self._least_end < len(self._sorted)
                and self._loads[self._sorted[self._least_end]] == self._least
            ):
                self._least_end += 1
            self._least_next = 0
        found = self._sorted[self._least_next]
        self._least_next += 1
        return found

    def next_most(self) -> int:
        """-1 where nobody is left who could lose one."""
        if self._most_next < self._most_begin:
            if self._most_end <= self._most_begin and self._most_begin > 0:
                # All of the range were excluded: the next load is that of the one before it.
                self._most = self._loads[self._sorted[self._most_begin - 1]]
            else:
                self._most -= 1
            while (
                self._most_begin > 0
                and self._loads[self._sorted[self._most_begin - 1]] == self._most
            ):
                self._most_begin -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return _NOBODY
        found = self._sorted[self._most_next]
        self._most_next -= 1
        return found

    def exclude_most(self) -> None:
        """The one that `next_most` gave has nothing to lose of this topic."""
        at = self._most_next + 1
        last = self._most_end - 1
        self._sorted[at], self._sorted[last] = self._sorted[last], self._sorted[at]
        self._most_end = last


_HALVES: Final = struct.Struct(">qq")
