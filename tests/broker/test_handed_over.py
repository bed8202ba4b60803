"""Real Kafka's own directory, with transactions, segments and deletions: asked by Kafka first and
by us afterwards, every answer is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kraftline.schema.api.describe_log_dirs import DescribeLogDirsRequest
from kraftline.schema.uuids import Uuid
from tests.broker.comparing import Broker
from tests.broker.running import create_topic
from tests.broker.stories import NOW, batch, deletion, fetch, offsets, produce, wanted
from tests.node.running import OurNode, RealKafka

pytestmark = pytest.mark.oracle
NAMES = ("mixed", "rolled", "cut")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[RealKafka]:
    found = RealKafka(tmp_path / "kafka")
    yield found
    found.kill()


@pytest.fixture
def ours(tmp_path: Path, kafka: RealKafka) -> Iterator[OurNode]:
    found = OurNode(tmp_path / "ours")
    found.log_dirs = [kafka.data]
    found.controller_port = kafka.cluster.controller_endpoint(1)[1]
    yield found
    found.kill()


def address(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.partition(":")
    return host, int(port)


def send(producer: Producer, topic: str, what: str, count: int, size: int = 10) -> None:
    for n in range(count):
        producer.produce(topic, f"{what} {n} ".ljust(size, "x").encode(), b"k", partition=0)
    producer.flush()


def fill(bootstrap: str, topic: str) -> None:
    """Transactions that end well, badly or not at all, and records of nobody's between them."""

    def transactional(name: str) -> Producer:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{name}"}
        producer = Producer(settings)
        producer.init_transactions(30)
        return producer

    one, two, open_one = transactional("one"), transactional("two"), transactional("open")
    plain = Producer({"bootstrap.servers": bootstrap})
    for turn in range(4):
        one.begin_transaction()
        send(one, topic, f"one {turn}", 5, 200)
        two.begin_transaction()
        send(plain, topic, f"plain {turn}", 3, 200)
        send(two, topic, f"two {turn}", 4, 200)
        (one.abort_transaction if turn % 2 else one.commit_transaction)(30)
        send(plain, topic, f"between {turn}", 2, 200)
        (two.commit_transaction if turn == 1 else two.abort_transaction)(30)
    open_one.begin_transaction()
    send(open_one, topic, "open", 3)
    send(plain, topic, "last", 2)


def everything(at: tuple[str, int], ids: dict[str, Uuid]) -> Iterator[tuple[str, object]]:
    broker = Broker(at)
    for name in NAMES:
        topic = (name, ids[name])
        for when in (-1, -2, -3, -4, 0, NOW, NOW + 10**15):
            # Kafka finds no time whose first segment was deleted by records, until it is gone.
            if name == "cut" and 0 <= when <= NOW:
                continue
            for isolation in (0, 1):
                request = offsets(name, (0, when), isolation_level=isolation)
                answer: Any = broker.ask(request, 11)
                if when == -1:  # a restart is an election
                    del answer["topics"][0]["partitions"][0]["leader_epoch"]
                yield f"{name}: time {when}, {isolation}", answer
        last: Any = broker.ask(offsets(name, (0, -1)), 7)
        end = last["topics"][0]["partitions"][0]["offset"]
        for offset in range(end + 2):
            for isolation in (0, 1):
                for most in (100, 3000, 1_000_000):
                    at_offset = wanted(0, offset, partition_max_bytes=most)
                    found = broker.ask(fetch(topic, at_offset, isolation=isolation), 12)
                    yield f"{name}: {offset}, {isolation}, {most}", found
    yield "directories", broker.ask(DescribeLogDirsRequest(topics=None), 4)
    broker.close()


@pytest.mark.soak
def test_every_answer_stays_the_same(kafka: RealKafka, ours: OurNode) -> None:
    kafka.start()
    at = address(kafka.bootstrap)
    small = {"internal.segment.bytes": "2000"}
    ids = {
        "mixed": create_topic(at, "mixed"),
        "rolled": create_topic(at, "rolled", small),
        "cut": create_topic(at, "cut", small),
    }
    for name in NAMES:
        fill(kafka.bootstrap, name)
    broker = Broker(at)
    for n in range(5):
        old = batch(b"old", count=3, when=NOW - n * 1000)
        broker.ask(produce(("mixed", ids["mixed"]), [(0, old)], acks=-1), 9)
    broker.ask(deletion(("cut", 0, 13)), 2)
    broker.close()
    expected = dict(everything(at, ids))
    kafka.stop()
    ours.start()
    found = dict(everything(address(ours.bootstrap), ids))
    assert found.keys() == expected.keys()
    differ = {key: (found[key], expected[key]) for key in found if found[key] != expected[key]}
    print(*differ.items(), sep="\n")
    assert not differ
