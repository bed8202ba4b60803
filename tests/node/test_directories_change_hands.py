"""A directory goes from our node to real Kafka and back, after a stop and after a kill: whoever has
it serves all that was acknowledged, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.node.running import Broker, OurNode, RealKafka
from tests.oracle.driver import wait_until

pytestmark = pytest.mark.oracle
COUNT = 300


class Pair:
    """One directory, and both who can have it; one at a time."""

    def __init__(self, root: Path) -> None:
        self.kafka = RealKafka(root / "kafka")
        self.ours = OurNode(root / "ours")
        self.ours.log_dirs = [self.kafka.data]
        self.ours.controller_port = self.kafka.cluster.controller_endpoint(1)[1]

    def kill(self) -> None:
        self.ours.kill()
        self.kafka.kill()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = Pair(tmp_path)
    yield found
    found.kill()


def fill(client: Confluent, topic: str, turn: int) -> None:
    for codec in ("none", "gzip", "lz4"):
        records = [Sent(b"k%d" % n, b"turn %d record %d" % (turn, n)) for n in range(COUNT)]
        client.produce(topic, records, codec=codec, idempotent=True)


def expected(turns: int) -> list[bytes]:
    return [
        b"turn %d record %d" % (turn, n)
        for turn in range(turns)
        for _ in range(3)
        for n in range(COUNT)
    ]


def check(client: Confluent, topic: str, turns: int) -> None:
    count = turns * 3 * COUNT
    assert client.watermarks(topic) == (0, count)
    assert [each.value for each in client.consume(topic, None, count)] == expected(turns)


@pytest.mark.parametrize("ending", [pytest.param("stop", marks=pytest.mark.soak), "kill"])
def test_a_directory_goes_there_and_back(pair: Pair, ending: str) -> None:
    topics = {"first", "made-by-0", "made-by-1", "made-by-2"}
    turns: tuple[Broker, ...] = (pair.ours, pair.kafka, pair.ours)
    for turn, node in enumerate(turns):
        node.start()
        client = Confluent(node.bootstrap)
        if turn == 0:
            client.create_topic("first")
        else:
            check(client, "first", turn)
        fill(client, "first", turn)
        client.create_topic(f"made-by-{turn}", 3, {"cleanup.policy": "compact"})
        client.produce(f"made-by-{turn}", [Sent(b"k", b"v")], partition=2)
        # What the first one made, the second one removes.
        if turn == 1:
            client.create_topic("short-lived")
            client.delete_topic("short-lived")
        if turn == 2:
            check(client, "first", 3)
            assert topics <= client.topics().keys()
            for made in range(3):
                assert client.watermarks(f"made-by-{made}", 2) == (0, 1)
        node.stop() if ending == "stop" else node.kill()


@pytest.mark.soak
def test_many_metadata_snapshots_and_segments_go_over(pair: Pair) -> None:
    """With sizes so small that the metadata log rolls, is snapshot and cut all the time."""
    small = {
        "metadata.log.max.record.bytes.between.snapshots": "3000",
        "internal.metadata.log.segment.bytes": "4096",
    }
    pair.ours.properties |= small
    turns: tuple[Broker, ...] = (pair.ours, pair.kafka)
    for turn, node in enumerate(turns):
        node.start()
        client = Confluent(node.bootstrap)
        for number in range(20):
            client.create_topic(f"t{turn}-{number}", 4)
        wait_until(lambda: len(client.topics()) == 20 * (turn + 1), "all topics")  # noqa: B023
        node.stop()
