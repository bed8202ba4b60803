"""What takes long for a large group is done in a thread, while others are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftline.broker.coordinators.groups.consumer.deciding import Caller
from tests.broker.consumer_groups.clusters import Cluster
from tests.broker.consumer_groups.simulated import GROUP, Coordinator
from tests.broker.consumer_groups.telling import alive, join, leave
from tests.groups.states import config_of


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    cluster = Cluster()
    cluster.topic("t", 4)
    made = Coordinator(config_of(group_consumer_assignment_interval_ms=0), cluster)
    made.settings.assigns_at_once = 0
    yield made
    made.close()


def test_who_joins_is_told_its_part_with_a_later_heartbeat(coordinator: Coordinator) -> None:
    joined = coordinator.ask(join(GROUP, "a", "t"))
    assert joined.member_epoch == 1
    assert joined.assignment is not None
    assert not joined.assignment.topic_partitions
    told = coordinator.ask(alive(GROUP, "a", 1))
    assert told.member_epoch == 2
    assert told.assignment is not None
    assert told.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)


def test_a_target_for_members_that_are_gone_is_not_taken(coordinator: Coordinator) -> None:
    coordinator.ask(join(GROUP, "a", "t"))
    coordinator.ask(alive(GROUP, "a", 1))
    desk = coordinator.state.desk
    caller = Caller("client", "/127.0.0.1", 1)
    group = coordinator.group
    assert group is not None

    async def meanwhile() -> None:
        """While a target is being found, the member goes."""
        desk.heartbeat(join(GROUP, "b", "t"), caller)
        assert GROUP in desk._assigning
        desk.heartbeat(leave(GROUP, "b"), caller)

    coordinator.loop.run(meanwhile())
    coordinator.settle()
    assert group.epoch == 4
    assert group.assignment_epoch == 2
    assert list(group.targets) == ["a"]
    coordinator.ask(alive(GROUP, "a", 2))
    assert group.assignment_epoch == 4
