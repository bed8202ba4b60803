"""Migration policies and sizes of groups, as real Kafka takes them. For a soak: each needs a broker
of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.consumer_groups.migration_stories import moves_as_far_as_is_allowed
from tests.broker.consumer_groups.telling import compare
from tests.broker.running import running
from tests.oracle.kafka import HOST, KraftCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]


@pytest.mark.parametrize(
    "settings",
    [
        {"group.consumer.migration.policy": "disabled"},
        {"group.consumer.migration.policy": "upgrade"},
        {"group.consumer.migration.policy": "Downgrade"},
        {"group.consumer.max.size": "1"},
        {"group.max.size": "1", "group.consumer.max.size": "2"},
    ],
    ids=str,
)
def test_groups_move_as_far_as_kafkas_would(tmp_path: Path, settings: dict[str, str]) -> None:
    own = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    kafka = KraftCluster(tmp_path / "kafka", dynamic=True, properties=settings)
    with running(tmp_path / "ours", {**own, **settings}) as ours, kafka:
        kafka.start()
        compare(moves_as_far_as_is_allowed, (HOST, kafka.port(1)), ours.address)
