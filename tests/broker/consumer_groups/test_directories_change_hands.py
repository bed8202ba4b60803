"""A directory with consumer groups goes from our node to real Kafka and back, by kill -9: whoever
has it knows the groups, and their members go on as if nothing had been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.consumer_groups.regex_stories import has_partitions
from tests.broker.consumer_groups.telling import ConsumerGroups, alive, join, leave
from tests.groups.offset_stories import commit
from tests.node.running import OurNode, RealKafka
from tests.oracle.kafka import HOST

pytestmark = pytest.mark.oracle
GROUPS = ("two", "static", "regex", "gone")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[OurNode, RealKafka]]:
    kafka = RealKafka(tmp_path / "kafka")
    ours = OurNode(tmp_path / "ours")
    ours.log_dirs = [kafka.data]
    ours.controller_port = kafka.cluster.controller_endpoint(1)[1]
    yield ours, kafka
    ours.kill()
    kafka.kill()


def made(broker: ConsumerGroups) -> str:
    """Groups of all sorts; their topic."""
    topic, id = broker.topic("t", partitions=4)
    two, static, regex, gone = (broker.consumer_group(name) for name in GROUPS)
    for group, member in ((two, "a"), (two, "b"), (gone, "a")):
        broker.beat(join(group, member, topic))
    broker.beat(alive(two, "a", 2))
    broker.beat(alive(two, "a", 2, ((id, (0, 1)),)))
    broker.beat(alive(two, "b", 3))
    broker.beat(join(static, "a", topic, instance_id="one"))
    broker.beat(leave(static, "a", "one", -2))
    broker.beat(join(regex, "a", regex=topic.replace("-", ".")))
    broker.until(alive(regex, "a", 1), has_partitions)
    broker.beat(leave(gone, "a"))
    request = commit(two, ((topic, id), ((0, 42),)), member_id="a", generation_id_or_member_epoch=3)
    broker.ask(request, 9)
    return topic


def described(broker: ConsumerGroups, groups: list[str]) -> list[object]:
    answer: Any = broker.message(ConsumerGroupDescribeRequest(group_ids=tuple(groups)), 1)
    while any(
        each.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        for each in answer.groups
    ):
        answer = broker.message(ConsumerGroupDescribeRequest(group_ids=tuple(groups)), 1)
    return sorted((broker.plain(each) for each in answer.groups), key=str)


def fetched(group: str, topic: str) -> OffsetFetchRequest:
    part = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
    return OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(group_id=group, member_id="a", member_epoch=3, topics=(part,)),
        )
    )


def goes_on(broker: ConsumerGroups, groups: list[str], topic: str, turn: int) -> None:
    """Members go on where they were, and somebody comes back."""
    two, static, regex, _ = groups
    before = described(broker, groups)
    # The hash of their topics is the same, so that they need no new epoch.
    for group, member, epoch in ((two, "a", 3), (two, "b", 3), (regex, "a", 2)):
        told: Any = broker.message(alive(group, member, epoch), 1)
        assert (told.error_code, told.member_epoch, told.assignment) == (0, epoch, None)
    assert described(broker, groups) == before
    # A member in the place of one that went away has what that one had.
    told = broker.message(join(static, f"b{turn}", topic, instance_id="one"), 1)
    assert told.member_epoch == 2
    assert set(told.assignment.topic_partitions[0].partitions) == {0, 1, 2, 3}
    broker.message(leave(static, f"b{turn}", "one", -2), 1)
    answer: Any = broker.message(fetched(two, topic), 9)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 42


@pytest.mark.soak
@pytest.mark.parametrize("first", ["ours", "kafka"])
def test_groups_go_over(pair: tuple[OurNode, RealKafka], first: str) -> None:
    ours, kafka = pair
    topic, groups = "", [""]
    last: ConsumerGroups | None = None
    before: list[object] = []
    turns: tuple[OurNode | RealKafka, ...] = (ours, kafka, ours)
    for turn, node in enumerate(turns if first == "ours" else turns[1:]):
        node.start()
        port = ours.port if node is ours else kafka.cluster.port(1)
        with closing(ConsumerGroups((HOST, port))) as broker:
            if last is None:
                topic = made(broker)
                groups = broker._groups
            else:
                broker.go_on_from(last)
                assert described(broker, groups) == before
                goes_on(broker, groups, topic, turn)
            before = described(broker, groups)
            last = broker
        node.kill()
