"""Offsets and classic groups, answered and written down as real Kafka does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.running import Running, running
from tests.groups import classic_stories, offset_stories
from tests.groups.telling import Story, compare
from tests.oracle.kafka import HOST, KraftCluster

STORIES = (*offset_stories.STORIES, *classic_stories.STORIES)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with running(tmp_path_factory.mktemp("ours"), settings) as node:
        yield node


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, kafka_4_3.port(1)), ours.address)
