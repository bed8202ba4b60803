"""What administrators ask for, answered as real Kafka answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.admin_stories import ADMIN_STORIES
from tests.broker.comparing import Story, compare
from tests.broker.config_stories import CONFIG_STORIES
from tests.broker.running import Running, running
from tests.oracle.kafka import HOST, KraftCluster

# What the real node's file says beside addresses and directories: it is told with its configs.
SETTINGS = {
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "4096",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.threads": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

ALL_STORIES = (*CONFIG_STORIES, *ADMIN_STORIES)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours"), SETTINGS) as node:
        yield node


@pytest.mark.parametrize("story", ALL_STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, kafka_4_3.port(1)), ours.address)
