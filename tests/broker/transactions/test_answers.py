"""Everything about transactions is answered as real Kafka answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker.running import Running, running
from tests.broker.transactions import offset_stories, stories
from tests.broker.transactions.telling import Teller
from tests.oracle.kafka import HOST, KraftCluster

_SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
Story = Callable[[Teller], list[object]]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours"), _SETTINGS) as node:
        yield node


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A node where everything is flushed before it is told, so that nothing is there at once."""
    settings = {**_SETTINGS, "log.flush.interval.messages": "1"}
    with running(tmp_path_factory.mktemp("careful"), settings) as node:
        yield node


def _told(story: Story, address: tuple[str, int]) -> list[object]:
    broker = Teller(address)
    try:
        return story(broker)
    finally:
        broker.close()


@pytest.mark.parametrize(
    "story", [*stories.STORIES, *offset_stories.STORIES], ids=lambda story: story.__name__
)
def test_kafka_answers_the_same(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    expected = _told(story, (HOST, kafka_4_3.port(1)))
    got = _told(story, ours.address)
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"


@pytest.mark.parametrize(
    "story",
    [
        stories.records_in_every_version,
        stories.ends_with_new_epochs,
        stories.records_that_add_their_partition,
        stories.a_zombie_is_fenced,
        stories.markers_by_hand,
        *offset_stories.STORIES,
    ],
    ids=lambda story: story.__name__,
)
def test_answers_wait_for_the_disk(story: Story, ours: Running, careful: Running) -> None:
    assert _told(story, careful.address) == _told(story, ours.address)
