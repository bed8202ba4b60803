"""Configs that change while the node runs take effect without a restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.comparing import Story, compare
from tests.broker.config_stories import BROKER, DELETE, SET, TOPIC, change
from tests.broker.effect_stories import EFFECT_STORIES
from tests.broker.running import Running, create_topic, running
from tests.broker.talking import Talk
from tests.oracle.kafka import HOST, KraftCluster


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours")) as node:
        yield node


@pytest.mark.parametrize("story", EFFECT_STORIES, ids=lambda story: story.__name__)
def test_clients_see_what_kafkas_see(story: Story, kafka_4_3: KraftCluster, ours: Running) -> None:
    compare(story, (HOST, kafka_4_3.port(1)), ours.address)


def soon(node: Running, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not node.run(ready):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_configs_of_topics_reach_open_logs(ours: Running) -> None:
    create_topic(ours.address, "reached")
    partitions = ours.node.broker.partitions

    def config(name: str) -> object:
        found = partitions.get("reached", 0)
        assert found is not None
        return getattr(found.log.config, name)

    with Talk(ours.address) as talk:
        for key, text, name, value, default in (
            ("retention.ms", "5000", "retention_ms", 5000, 604_800_000),
            ("retention.bytes", "7000", "retention_bytes", 7000, -1),
            ("segment.bytes", "2000000", "segment_bytes", 2_000_000, 1 << 30),
            ("segment.ms", "9000", "segment_ms", 9000, 604_800_000),
            ("max.message.bytes", "777", "max_message_bytes", 777, 1_048_588),
            ("cleanup.policy", "compact", "compact", True, False),
            ("flush.messages", "3", "flush_messages", 3, 2**63 - 1),
            ("min.insync.replicas", "2", "min_insync_replicas", 2, 1),
        ):
            talk.ask(change((TOPIC, "reached", [(key, SET, text)])), 1)
            soon(ours, lambda name=name, value=value: config(name) == value)  # type: ignore[misc]
            talk.ask(change((TOPIC, "reached", [(key, DELETE, None)])), 1)
            soon(ours, lambda name=name, value=default: config(name) == value)  # type: ignore[misc]


def test_configs_of_the_broker_reach_logs_listeners_and_producers(tmp_path: Path) -> None:
    changes = [
        ("max.connections.per.ip", SET, "17"),
        ("listener.name.plaintext.max.connections", SET, "23"),
        ("producer.id.expiration.ms", SET, "4321"),
        ("transaction.partition.verification.enable", SET, "false"),
        ("log.retention.ms", SET, "8765"),
    ]
    with running(tmp_path / "data") as node:
        create_topic(node.address, "reached")
        with Talk(node.address) as talk:
            talk.ask(change((BROKER, "1", changes)), 1)
        soon(node, lambda: _has_changed(node))
    # The metadata has them: so does the next start.
    with running(tmp_path / "data") as node:
        soon(node, lambda: _has_changed(node))


def _has_changed(node: Running) -> bool:
    broker = node.node.broker
    limits = node.node.listeners[0].limits
    found = broker.partitions.get("reached", 0)
    return (
        found is not None
        and found.log.config.retention_ms == 8765
        and found.log.producers.expiration_ms == 4321
        and not broker.verifies_transactions
        and (limits.connections_of_address, limits.connections) == (17, 23)
    )
