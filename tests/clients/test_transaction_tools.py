"""Transactions with Kafka's own producer and tools, against our node and real Kafka."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from kraftline.records import Record, build_batch
from kraftline.schema.uuids import Uuid
from tests.broker.stories import produce
from tests.broker.talking import Talk
from tests.clients.adapters import Confluent
from tests.clients.transactional import confluent_committed
from tests.node.running import OurNode, RealKafka
from tests.oracle.driver import Driver
from tests.oracle.java import run
from tests.oracle.kafka import HOST
from tests.oracle.lines import Json
from tests.oracle.tools import KafkaTools

pytestmark = pytest.mark.oracle
NewName = Callable[[], str]
Tool = Callable[..., list[list[str]]]


@pytest.fixture(scope="module", params=["kraftline", pytest.param("kafka", marks=pytest.mark.soak)])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp(f"transaction-tools-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    settings = {
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "3",
        # So that a transaction can be left hanging.
        "transaction.partition.verification.enable": "false",
    }
    with kind(root, settings) as node:
        yield node.bootstrap


@pytest.fixture(scope="module")
def driver(bootstrap: str) -> Iterator[Driver]:
    with Driver(bootstrap) as driver:
        yield driver


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools() as tools:
        yield tools


@pytest.fixture
def tool(tools: KafkaTools, bootstrap: str) -> Tool:
    """The lines of kafka-transactions, by column, without their heads."""

    def call(*arguments: str) -> list[list[str]]:
        said = tools.call("TransactionsCommand", "--bootstrap-server", bootstrap, *arguments)
        return [line.split() for line in said.splitlines()[1:] if line.strip()]

    return call


def record(value: str) -> list[Json]:
    return [{"v": value}]


def test_kafkas_own_producer(bootstrap: str, driver: Driver, tool: Tool, new_name: NewName) -> None:
    topic, id = new_name(), new_name()
    Confluent(bootstrap).create_topic(topic, 2)
    mine: dict[str, Json] = {"transactional.id": id}
    settings = {"transactional.id": id}
    for turn in range(4):
        driver.do("begin", producer=id, settings=mine)
        driver.produce(topic, record(f"{turn}-0"), producer=id, settings=settings)
        driver.produce(topic, record(f"{turn}-1"), producer=id, partition=1, settings=settings)
        driver.do("offsetsToTransaction", producer=id, group=topic, topic=topic, offset=turn)
        driver.do("abort" if turn % 2 else "commit", producer=id)
    assert [len(confluent_committed(bootstrap, topic, n)) for n in (0, 1)] == [2, 2]

    # What is going on, as the tool tells it.
    driver.do("begin", producer=id)
    driver.produce(topic, record("open"), producer=id)
    states = {line[0]: line for line in tool("list")}
    assert states[id][1] == "1"
    assert states[id][3] == "Ongoing"
    [described] = tool("describe", "--transactional-id", id)
    assert described[1] == id
    assert f"{topic}-0" in described[-1]
    [producer] = tool("describe-producers", "--topic", topic, "--partition", "0")
    assert producer[0] == states[id][2]
    start = producer[-1]
    assert start.isdigit()
    assert tool("find-hanging", "--broker-id", "1") == []

    # An administrator ends it there; the coordinator goes on by itself.
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", start)
    [producer] = tool("describe-producers", "--topic", topic, "--partition", "0")
    assert producer[-1] == "None"
    driver.do("fenceProducers", id=id)
    assert {line[0]: line[3] for line in tool("list")}[id] == "Empty"
    with pytest.raises(Exception, match=r"Fenced|InvalidProducerEpoch"):
        driver.do("commit", producer=id)


def test_a_hanging_transaction_is_found_and_aborted(
    bootstrap: str, tool: Tool, new_name: NewName
) -> None:
    topic = new_name()
    client = Confluent(bootstrap)
    client.create_topic(topic)
    host, _, port = bootstrap.rpartition(":")
    with Talk((host or HOST, int(port))) as talk:
        # Nobody has begun this one, and nobody will end it. Its record is an hour old.
        then = time.time_ns() // 1_000_000 - 3_600_000
        data = build_batch(
            [Record(0, then, b"k", b"v")],
            producer_id=4711,
            producer_epoch=3,
            base_sequence=0,
            is_transactional=True,
        )
        nowhere = topic, Uuid(bytes(16))
        talk.ask(produce(nowhere, [(0, data)], acks=-1, transactional_id="nobody"), 9)
    assert confluent_committed(bootstrap, topic) == []
    hanging = tool("find-hanging", "--topic", topic, "--partition", "0")
    [found] = [line for line in hanging if line[0] == topic]
    assert found[1:3] == ["0", "4711"]
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert tool("find-hanging", "--topic", topic, "--partition", "0") == []
    assert client.watermarks(topic) == (0, 2)


@pytest.mark.soak
def test_the_performance_tool_commits(bootstrap: str, new_name: NewName) -> None:
    topic = new_name()
    Confluent(bootstrap).create_topic(topic)
    arguments = ["--topic", topic, "--num-records", "2000", "--throughput", "-1"]
    arguments += ["--record-size", "100", "--bootstrap-server", bootstrap]
    arguments += ["--transactional-id", topic, "--transaction-duration-ms", "20"]
    said = run("org.apache.kafka.tools.ProducerPerformance", arguments, timeout=90)
    assert re.search(r"2000 records sent", said)
    assert len(confluent_committed(bootstrap, topic)) == 2000
