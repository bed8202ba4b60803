"""Groups of the new protocol, answered and written down as real Kafka does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.consumer_groups import migration_stories, regex_stories, stories
from tests.broker.consumer_groups.telling import Story, compare
from tests.broker.running import Running, running
from tests.oracle.kafka import HOST, KraftCluster

STORIES = (*stories.STORIES, *regex_stories.STORIES, *migration_stories.STORIES)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with running(tmp_path_factory.mktemp("ours"), settings) as node:
        yield node


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, kafka_4_3.port(1)), ours.address)
