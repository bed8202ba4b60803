"""What depends on settings, as real Kafka does it with the same settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.running import Running, running
from tests.groups.settings_stories import SETTINGS, STORIES
from tests.groups.telling import Story, compare
from tests.oracle.kafka import HOST, KraftCluster

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    root = tmp_path_factory.mktemp("real")
    with KraftCluster(root, dynamic=True, properties=SETTINGS) as kafka:
        kafka.start()
        yield kafka


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours"), SETTINGS) as node:
        yield node


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_does_the_same(story: Story, real: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, real.port(1)), ours.address)
