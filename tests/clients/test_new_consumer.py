"""Consumers of the new protocol: librdkafka's and Java's, against our node and real Kafka."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import confluent_kafka
import pytest

from tests.clients.adapters import Confluent, Sent
from tests.node.running import OurNode, RealKafka
from tests.oracle.java import run

NewName = Callable[[], str]
_SECONDS = 60.0
# Heartbeats, by which members hear of everything, come every five seconds by default.
PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp(f"consumers-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(root, PROPERTIES) as node:
        yield node.bootstrap


class Member:
    """A consumer that notes what it is given and what is taken from it."""

    def __init__(self, bootstrap: str, group: str, *topics: str, **settings: Any) -> None:
        self.seen: list[tuple[int, int, bytes]] = []
        self.given: list[set[int]] = []
        self.taken: list[set[int]] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                "topic.metadata.refresh.interval.ms": 500,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked)

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *problem: object) -> None:
        self._consumer.close()

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        self.given.append({each.partition for each in partitions})
        consumer.incremental_assign(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        self.taken.append({each.partition for each in partitions})
        consumer.incremental_unassign(partitions)

    @property
    def owned(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def poll(self) -> None:
        message: Any = self._consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.seen.append((message.partition(), message.offset(), message.value()))

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def commit_now(self) -> list[Any]:
        """What became of each partition that it has read of; a KafkaException: of none."""
        found: list[Any] = self._consumer.commit(asynchronous=False)
        return found


def until(is_so: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < deadline, [each.owned for each in members]
        for each in members:
            each.poll()


def balanced(members: list[Member], partitions: int) -> bool:
    """All partitions are owned, by one member each, and evenly."""
    owned = [each.owned for each in members]
    return sum(map(len, owned)) == partitions == len(set().union(*owned)) and (
        max(map(len, owned)) - min(map(len, owned)) <= 1
    )


def test_members_share_what_they_read_and_let_go_of_it(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(topic, 6)
    produced: list[tuple[int, int, bytes]] = []

    def produce(count: int) -> None:
        for partition in range(6):
            records = [Sent(None, b"%d" % n) for n in range(count)]
            offsets = client.produce(topic, records, partition=partition)
            produced.extend((partition, at, b"%d" % n) for n, at in enumerate(offsets))

    def all_is_read() -> bool:
        return sum(len(each.seen) for each in everybody) >= len(produced)

    def commit() -> None:
        """Or librdkafka may begin anew where it has not found a position before it rebalances."""
        until(all_is_read, *members)
        for each in members:
            each.commit()

    produce(1)
    with ExitStack() as stack:
        members = [stack.enter_context(Member(bootstrap, group, topic))]
        everybody = list(members)
        until(lambda: balanced(members, 6), *members)
        commit()
        for _ in range(2):
            members.append(stack.enter_context(Member(bootstrap, group, topic)))
            everybody.append(members[-1])
            until(lambda: balanced(members, 6), *members)
        # Cooperative: who stays keeps what it may.
        assert [each for each in members[0].given if each] == [set(range(6))]
        assert len(set().union(*members[0].taken)) == 4
        produce(5)
        commit()
        with members.pop():
            pass
        until(lambda: balanced(members, 6), *members)
        produce(1)
        commit()
        assert sorted(itertools.chain.from_iterable(each.seen for each in everybody)) == sorted(
            produced
        )


def test_who_comes_later_goes_on_where_the_group_is(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(topic)
    client.produce(topic, [Sent(None, b"%d" % n) for n in range(10)])
    with Member(bootstrap, group, topic, max_poll_interval_ms=60_000) as member:
        until(lambda: len(member.seen) == 10, member)
        member.commit()
    client.produce(topic, [Sent(None, b"%d" % n) for n in range(10, 15)])
    with Member(bootstrap, group, topic) as member:
        until(lambda: len(member.seen) == 5, member)
        assert [value for _, _, value in member.seen] == [b"%d" % n for n in range(10, 15)]


def test_static_members_come_back_to_what_they_had(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    Confluent(bootstrap).create_topic(topic, 4)
    with Member(bootstrap, group, topic, group_instance_id="one") as one:
        with Member(bootstrap, group, topic, group_instance_id="two") as two:
            members = [one, two]
            until(lambda: balanced(members, 4), *members)
            had = two.owned
        before = len(one.given), len(one.taken)
        with Member(bootstrap, group, topic, group_instance_id="two") as again:
            until(lambda: again.owned == had, one, again)
        assert (len(one.given), len(one.taken)) == before


def test_topics_are_found_by_expression(bootstrap: str, new_name: NewName) -> None:
    prefix, group = new_name(), new_name()
    client = Confluent(bootstrap)
    for name in ("one", "two"):
        client.create_topic(f"{prefix}-{name}")
    client.create_topic(f"other-{prefix}")
    with Member(bootstrap, group, f"^{prefix}-.*") as member:
        until(lambda: len(member.owned) == 2, member)
        assert member.owned == {(f"{prefix}-one", 0), (f"{prefix}-two", 0)}


@pytest.mark.soak
def test_topics_that_are_made_later_are_found_too(bootstrap: str, new_name: NewName) -> None:
    """Which takes ten seconds and more: so often expressions are looked up."""
    prefix, group = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(f"{prefix}-one")
    with Member(bootstrap, group, f"^{prefix}-.*") as member:
        until(lambda: len(member.owned) == 1, member)
        client.create_topic(f"{prefix}-later", 2)
        until(lambda: len(member.owned) == 3, member)


@pytest.mark.soak
def test_a_member_that_is_silent_loses_what_it_had(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    Confluent(bootstrap).create_topic(topic, 2)
    with (
        Member(bootstrap, group, topic, max_poll_interval_ms=2000) as one,
        Member(bootstrap, group, topic) as two,
    ):
        members = [one, two]
        until(lambda: balanced(members, 2), *members)
        # It does not poll any more, so that its client leaves the group for it.
        until(lambda: len(two.owned) == 2, two)


def test_members_of_both_protocols_share_a_group(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    Confluent(bootstrap).create_topic(topic, 4)
    classic: dict[str, Any] = {
        "group_protocol": "classic",
        "partition_assignment_strategy": "cooperative-sticky",
        "heartbeat_interval_ms": 100,
    }
    with Member(bootstrap, group, topic, **classic) as old:
        until(lambda: len(old.owned) == 4, old)
        with Member(bootstrap, group, topic) as new:
            members = [old, new]
            until(lambda: balanced(members, 4), *members)
        until(lambda: len(old.owned) == 4, old)


@contextmanager
def reading(bootstrap: str, group: str, topic: str, count: int) -> Iterator[Member]:
    with Member(bootstrap, group, topic, client_id="reader") as member:
        until(lambda: len(member.seen) == count, member)
        member.commit()
        yield member


@pytest.mark.oracle
def test_kafkas_tools_describe_such_groups(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(topic, 2)
    client.produce(topic, [Sent(None, b"value")] * 7)

    def told(*arguments: str) -> str:
        where = ["--bootstrap-server", bootstrap, "--group", group, "--describe", *arguments]
        return run("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", where, timeout=90)

    with reading(bootstrap, group, topic, 7):
        assert re.search(rf"{group}\s+{topic}\s+0\s+7\s+7\s+0\s+\S+\s+/127.0.0.1\s+reader", told())
        members = told("--members", "--verbose")
        assert re.search(rf"{group}\s+\S+\s+/127.0.0.1\s+reader\s+2\s", members)
        assert f"{topic}:0,1" in members
        assert re.search(rf"{group}\s+\S+\s+\(1\)\s+uniform\s+Stable\s+1", told("--state"))


@pytest.mark.oracle
def test_javas_console_consumer_reads_in_such_a_group(bootstrap: str, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    client = Confluent(bootstrap)
    client.create_topic(topic, 2)
    client.produce(topic, [Sent(None, b"line %d" % n) for n in range(20)])
    said = run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        [
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group),
            *("--from-beginning", "--max-messages", "20", "--timeout-ms", "60000"),
            *("--command-property", "group.protocol=consumer"),
        ],
        timeout=90,
    )
    assert said.splitlines() == [f"line {n}" for n in range(20)]
    client.produce(topic, [Sent(None, b"more")])
    with Member(bootstrap, group, topic) as member:
        until(lambda: bool(member.seen), member)
        assert member.seen == [(0, 20, b"more")]
