"""Consumers of the classic protocol, of three libraries and of Kafka's tools, against our node and
against real Kafka: they share a topic, come and go, and find their offsets again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.clients.classic_members import (
    MEMBERS,
    AioKafkaMember,
    ConfluentMember,
    KafkaPythonMember,
    Member,
    until,
)
from tests.node.running import OurNode, RealKafka
from tests.oracle.tools import KafkaTools

NewName = Callable[[], str]
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "num.partitions": "1",
}
PARTITIONS = 6
EACH = 5
ALL = {(partition, offset) for partition in range(PARTITIONS) for offset in range(EACH)}


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp(f"classic-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(root, PROPERTIES) as node:
        yield node.bootstrap


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    """With some records in each partition."""
    name = new_name()
    client = Confluent(bootstrap)
    client.create_topic(name, PARTITIONS)
    for partition in range(PARTITIONS):
        records = [Sent(None, b"%d-%d" % (partition, n)) for n in range(EACH)]
        client.produce(name, records, partition=partition)
    return name


_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    return f"group-{next(_numbers)}"


def share(*members: Member) -> bool:
    """Does each have as many partitions, and together all?"""
    owned = [each.owned for each in members]
    equal = PARTITIONS // len(members)
    return all(len(each) == equal for each in owned) and len(set().union(*owned)) == PARTITIONS


def places(*members: Member) -> list[tuple[int, int]]:
    return sorted((partition, offset) for each in members for partition, offset, _ in each.seen)


@pytest.mark.parametrize("library", MEMBERS)
def test_three_members_share_and_come_back_to_their_offsets(
    bootstrap: str, topic: str, group: str, library: str
) -> None:
    kind = MEMBERS[library]
    with ExitStack() as members:
        first = members.enter_context(kind(bootstrap, group, topic))
        until(lambda: set(places(first)) == ALL and first.is_committed, first)
        others = [members.enter_context(kind(bootstrap, group, topic)) for _ in range(2)]
        until(lambda: share(first, *others), first, *others)
    Confluent(bootstrap).produce(topic, [Sent(None, b"more")], partition=3)
    with kind(bootstrap, group, topic) as again:
        until(lambda: bool(again.seen), again)
        assert again.seen == [(3, EACH, b"more")]


def test_three_libraries_share_a_group(bootstrap: str, topic: str, group: str) -> None:
    with (
        ConfluentMember(bootstrap, group, topic) as one,
        KafkaPythonMember(bootstrap, group, topic) as two,
    ):
        until(lambda: share(one, two), one, two)
        with AioKafkaMember(bootstrap, group, topic) as third:
            until(lambda: share(one, two, third), one, two, third)


def test_cooperative_members_read_each_record_once(bootstrap: str, topic: str, group: str) -> None:
    cooperative = {"partition_assignment_strategy": "cooperative-sticky"}
    with ConfluentMember(bootstrap, group, topic, **cooperative) as one:
        until(lambda: set(places(one)) == ALL and one.is_committed, one)
        with (
            ConfluentMember(bootstrap, group, topic, **cooperative) as two,
            ConfluentMember(bootstrap, group, topic, **cooperative) as three,
        ):
            until(lambda: share(one, two, three), one, two, three)
            assert places(one, two, three) == sorted(ALL)
        until(lambda: share(one), one)


@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_static_member_comes_back_without_a_rebalance(
    bootstrap: str, topic: str, group: str, library: str
) -> None:
    kind = MEMBERS[library]
    admin = Confluent(bootstrap)
    with kind(bootstrap, group, topic, instance="one") as one:
        until(lambda: share(one), one)
        with kind(bootstrap, group, topic, instance="two") as two:
            until(lambda: share(one, two), one, two)
            before = two.owned
        kept = one.owned
        with kind(bootstrap, group, topic, instance="two") as two:
            until(lambda: two.owned == before, one, two)
            assert one.owned == kept
    assert admin.topics()[topic] == PARTITIONS


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools() as running:
        yield running


@pytest.mark.oracle
def test_consumer_groups_are_administered(
    bootstrap: str, topic: str, group: str, tools: KafkaTools
) -> None:
    server = ("--bootstrap-server", bootstrap)

    def groups(*arguments: str) -> str:
        return tools.call(GROUPS, *server, *arguments)

    with ConfluentMember(bootstrap, group, topic) as one:
        until(lambda: set(places(one)) == ALL and one.is_committed, one)
        assert group in groups("--list").split()
        assert re.search(rf"{group}\s+Classic\s+Stable", groups("--list", "--type", "--state"))
        members = groups("--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{group}\s+rdkafka-\S+\s+/127.0.0.1\s+rdkafka\s+6", members)
        state = groups("--describe", "--group", group, "--state")
        assert re.search(rf"{group}\s+127.0.0.1:\S+\s+\(1\)\s+range\s+Stable\s+1", state)
    described = groups("--describe", "--group", group)
    found = re.findall(rf"^{group}\s+{topic}\s+(\d)\s+(\d+)\s+(\d+)\s+(\d+)", described, re.M)
    assert sorted(found) == [(str(n), "5", "5", "0") for n in range(PARTITIONS)]
    of_topic = ("--group", group, "--topic", topic)
    reset = groups("--reset-offsets", *of_topic, "--to-earliest", "--execute")
    assert len(re.findall(rf"{group}\s+{topic}\s+\d\s+0", reset)) == PARTITIONS
    shifted = groups(
        *("--reset-offsets", "--group", group, "--topic", f"{topic}:2,3"),
        *("--shift-by", "3", "--execute"),
    )
    assert len(re.findall(rf"{group}\s+{topic}\s+[23]\s+3", shifted)) == 2
    with ConfluentMember(bootstrap, group, topic) as again:
        until(lambda: len(again.seen) == len(ALL) - 6, again)
        assert min(offset for partition, offset in places(again) if partition == 2) == 3
    deleted = groups("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert re.search(rf"{topic}\s+0\s+Successful", deleted)
    described = groups("--describe", "--group", group)
    assert not re.search(rf"^{group}\s+{topic}\s+0\s+\d", described, re.M)
    assert "was successful" in groups("--delete", "--group", group)
    assert group not in groups("--list").split()


@pytest.mark.oracle
def test_the_console_consumer_goes_on_where_its_group_was(
    bootstrap: str, topic: str, group: str, tools: KafkaTools
) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group", group]
    arguments.append("--from-beginning")
    name = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    first = tools.call(name, *arguments, "--max-messages", "20").split()
    assert len(first) == 20
    rest = tools.call(name, *arguments, "--max-messages", "10").split()
    assert sorted([*first, *rest]) == sorted(f"{p}-{n}" for p, n in ALL)
