"""Transactions as clients in Python see them: the same of our node and of real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from tests.clients.adapters import Confluent, Sent
from tests.clients.transactional import (
    PRODUCERS,
    READERS,
    ConfluentTransactions,
    Fenced,
    Transactions,
)
from tests.node.running import OurNode, RealKafka
from tests.oracle.driver import wait_until

NewName = Callable[[], str]
Begin = Callable[..., Transactions]


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp(f"transactions-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    settings = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
    }
    with kind(root, settings) as node:
        yield node.bootstrap


@pytest.fixture(params=PRODUCERS)
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def begin(bootstrap: str, library: str) -> Iterator[Begin]:
    """Makes producers with a transactional id, and closes them."""
    made: list[Transactions] = []

    def make(id: str, **settings: int) -> Transactions:
        made.append(PRODUCERS[library](bootstrap, id, **settings))  # type: ignore[call-arg]  # of all three
        return made[-1]

    yield make
    for each in made:
        each.close()


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    )
    try:
        asked = [confluent_kafka.TopicPartition(topic, 0)]
        return consumer.committed(asked, timeout=20)[0].offset
    finally:
        consumer.close()


def test_only_what_was_committed_is_seen(
    bootstrap: str, library: str, begin: Begin, new_name: NewName
) -> None:
    topic, read = new_name(), READERS[library]
    Confluent(bootstrap).create_topic(topic, 2)
    producer = begin(topic)
    for turn in range(4):
        producer.begin()
        for number in range(5):
            producer.send(topic, b"%d-%d" % (turn, number))
        producer.send(topic, b"%d-other" % turn, partition=1)
        producer.abort() if turn % 2 else producer.commit()
    expected = [b"%d-%d" % (turn, number) for turn in (0, 2) for number in range(5)]
    assert read(bootstrap, topic) == expected
    assert read(bootstrap, topic, 1) == [b"0-other", b"2-other"]
    # One that is open hides what comes behind it, be it of others.
    producer.begin()
    producer.send(topic, b"open")
    other = begin(f"{topic}-other")
    other.begin()
    other.send(topic, b"behind")
    other.commit()
    assert read(bootstrap, topic) == expected
    producer.commit()
    assert read(bootstrap, topic) == [*expected, b"open", b"behind"]


def test_offsets_go_with_the_records(bootstrap: str, begin: Begin, new_name: NewName) -> None:
    """Consume, transform, produce: what was read is committed with what was made of it."""
    source, target = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(source)
    client.create_topic(target)
    group = f"readers-of-{source}"
    producer = begin(source)
    producer.begin()
    producer.send(target, b"made of 0 to 4")
    producer.send_offset(group, source, 0, 5)
    producer.commit()
    assert committed_offset(bootstrap, group, source) == 5
    producer.begin()
    producer.send(target, b"made of 5 to 9")
    producer.send_offset(group, source, 0, 10)
    producer.abort()
    assert committed_offset(bootstrap, group, source) == 5
    producer.begin()
    producer.send_offset(group, source, 0, 7)
    producer.commit()
    assert committed_offset(bootstrap, group, source) == 7
    assert READERS["confluent-kafka"](bootstrap, target) == [b"made of 0 to 4"]


@pytest.mark.soak  # kafka-python's zombie may begin anew, and fence the other one
def test_a_zombie_is_fenced(bootstrap: str, library: str, begin: Begin, new_name: NewName) -> None:
    topic = new_name()
    Confluent(bootstrap).create_topic(topic)
    old = begin(topic)
    old.begin()
    old.send(topic, b"of the old one")
    new = begin(topic)

    def go_on() -> None:
        old.send(topic, b"more of the old one")
        old.commit()

    with pytest.raises(Fenced):
        go_on()
    new.begin()
    new.send(topic, b"of the new one")
    new.commit()
    assert READERS[library](bootstrap, topic) == [b"of the new one"]


@pytest.mark.soak
def test_what_takes_too_long_is_aborted(
    bootstrap: str, library: str, begin: Begin, new_name: NewName
) -> None:
    topic = new_name()
    Confluent(bootstrap).create_topic(topic)
    slow = begin(topic, timeout_ms=1000)
    slow.begin()
    slow.send(topic, b"slow")
    other = begin(f"{topic}-other")
    other.begin()
    other.send(topic, b"behind")
    other.commit()
    # Nothing is seen before the slow one has ended; then it is none of what is seen.
    wait_until(lambda: bool(READERS[library](bootstrap, topic)), "the timeout")
    assert READERS[library](bootstrap, topic) == [b"behind"]


def test_each_record_is_transformed_once(bootstrap: str, new_name: NewName) -> None:
    """A member of a group reads, writes what it made of it, and commits both in one; what it did in
    vain is done again by the next one."""
    source, target, group = new_name(), new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(source)
    client.create_topic(target)
    client.produce(source, [Sent(None, b"%d" % number) for number in range(20)])
    for turn in range(2):
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        consumer.subscribe([source])
        producer = ConfluentTransactions(bootstrap, group)
        for part in range(2):
            producer.begin()
            read: list[bytes] = []
            while len(read) < 5:
                message = consumer.poll(20)
                assert message is not None
                assert message.error() is None, message.error()
                read.append(message.value() or b"")
            for value in read:
                producer.send(target, b"made of %s" % value)
            where = consumer.position(consumer.assignment())
            producer.send_positions(where, consumer)
            if turn == 0 and part == 1:
                producer.abort()
            else:
                producer.commit()
        consumer.close()
        producer.close()
    # Of the first member 5, of the second 10.
    expected = [b"made of %d" % number for number in range(15)]
    assert READERS["confluent-kafka"](bootstrap, target) == expected
    assert committed_offset(bootstrap, group, source) == 15
