"""Produce, Fetch and what goes with them, answered as real Kafka answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.comparing import Story, compare
from tests.broker.running import Running, running
from tests.broker.stories import STORIES
from tests.oracle.kafka import HOST, KraftCluster


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours")) as node:
        yield node


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, kafka_4_3.port(1)), ours.address)
