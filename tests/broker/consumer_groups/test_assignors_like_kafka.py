"""Assignors give every partition to the member that Kafka's own would give it to."""

from __future__ import annotations

import random

import pytest

from kraftline.broker.coordinators.groups.consumer.assignors import ASSIGNORS
from kraftline.broker.coordinators.groups.consumer.assignors.task import Task, Wish
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.deciding import GroupDecisions

pytestmark = pytest.mark.oracle


def some_task(chance: random.Random) -> Task:
    """Members with some of the topics, who had something before: also of topics that they do not
    want any more, or that are gone."""
    gone = Uuid(chance.randbytes(16))
    topics = {
        Uuid(chance.randbytes(16)): chance.choice([1, 2, 3, 7, 16, 40])
        for _ in range(chance.randint(1, 6))
    }
    is_even = chance.random() < 0.5
    wanted = frozenset(topic for topic in topics if chance.random() < 0.8)
    ids = [
        chance.choice([str(Uuid(chance.randbytes(16))), f"member-{number}"])
        for number in range(chance.randint(1, 40))
    ]
    owners: dict[str, dict[Uuid, set[int]]] = {id: {} for id in ids}
    for topic, count in (*topics.items(), (gone, 3)):
        for partition in range(count):
            if chance.random() < 0.7:
                owner = chance.choice(ids[: chance.randint(1, len(ids))])
                owners[owner].setdefault(topic, set()).add(partition)
    taken: dict[Uuid, set[int]] = {}
    members = {}
    for id, owned in owners.items():
        for topic, partitions in owned.items():
            taken.setdefault(topic, set()).update(partitions)
        members[id] = Wish(
            topics=wanted
            if is_even
            else frozenset(topic for topic in topics if chance.random() < 0.6),
            assigned={topic: frozenset(each) for topic, each in owned.items()},
            instance_id=f"instance-{chance.randint(0, 9)}-{id}" if chance.random() < 0.3 else None,
        )
    return Task(members, topics, {topic: frozenset(each) for topic, each in taken.items()}, is_even)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_every_partition_goes_where_kafka_gives_it(
    assignor: str, decisions: GroupDecisions
) -> None:
    chance = random.Random(848)
    for _ in range(400):
        task = some_task(chance)
        expected = decisions.assign(assignor, task)
        got = ASSIGNORS[assignor](task)
        assert {id: dict(each) for id, each in got.items()} == expected


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_no_members_get_nothing(assignor: str) -> None:
    assert ASSIGNORS[assignor](Task({}, {}, {}, True)) == {}
