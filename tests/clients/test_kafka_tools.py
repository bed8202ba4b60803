"""Kafka's own tools against our node, and the same against real Kafka."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.oracle.java import run

pytestmark = pytest.mark.oracle
NewName = Callable[[], str]


def tool(name: str, *arguments: str, stdin: str = "") -> str:
    return run(f"org.apache.kafka.tools.{name}", arguments, stdin=stdin, timeout=90)


def test_topics_are_made_listed_and_removed(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    server = ("--bootstrap-server", bootstrap)
    made = tool(
        *("TopicCommand", *server, "--create", "--topic", name, "--partitions", "2"),
        *("--config", "retention.ms=100000"),
    )
    assert f"Created topic {name}." in made
    assert name in tool("TopicCommand", *server, "--list").split()
    tool("TopicCommand", *server, "--delete", "--topic", name)


def test_topics_are_described(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, 2)
    said = tool("TopicCommand", "--bootstrap-server", bootstrap, "--describe", "--topic", name)
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1", said)
    assert len(re.findall(r"Leader: 1\s+Replicas: 1\s+Isr: 1", said)) == 2


def test_console_producer_and_consumer_understand_each_other(
    bootstrap: str, new_name: NewName
) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name)
    server = ("--bootstrap-server", bootstrap, "--topic", name)
    lines = [f"line {number}" for number in range(200)]
    tool("ConsoleProducer", *server, stdin="\n".join(lines) + "\n")
    said = run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        [*server, "--partition", "0", "--offset", "earliest", "--max-messages", "200"],
        timeout=90,
    )
    assert said.splitlines() == lines


def test_offsets_are_told_and_records_deleted(
    bootstrap: str, new_name: NewName, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = new_name()
    client = Confluent(bootstrap)
    client.create_topic(name, 2)
    base = time.time_ns() // 1_000_000 - 100_000  # not so old that it would be deleted
    client.produce(name, [Sent(None, b"v%d" % n, base + n) for n in range(20)])
    server = ("--bootstrap-server", bootstrap)

    def offsets(at: str) -> str:
        return tool("GetOffsetShell", *server, "--topic", name, "--time", at).strip()

    assert offsets("-1") == f"{name}:0:20\n{name}:1:0"
    assert offsets("-3").splitlines()[0] == f"{name}:0:19"
    assert offsets(f"{base + 5}").splitlines()[0] == f"{name}:0:5"
    file = tmp_path_factory.mktemp("delete") / "offsets.json"
    where = {"topic": name, "partition": 0, "offset": 7}
    file.write_text(json.dumps({"partitions": [where], "version": 1}))
    assert "low_watermark: 7" in tool(
        "DeleteRecordsCommand", *server, "--offset-json-file", str(file)
    )
    assert offsets("-2") == f"{name}:0:7\n{name}:1:0"
    assert client.watermarks(name) == (7, 20)


def test_log_directories_are_described(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    client = Confluent(bootstrap)
    client.create_topic(name)
    client.produce(name, [Sent(None, b"v" * 1000)])
    said = tool(
        "LogDirsCommand", "--bootstrap-server", bootstrap, "--describe", "--topic-list", name
    )
    (found,) = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    (directory,) = found["brokers"][0]["logDirs"]
    assert directory["error"] is None
    (partition,) = directory["partitions"]
    assert (partition["partition"], partition["offsetLag"]) == (f"{name}-0", 0)
    assert partition["size"] > 1000


def test_api_versions_are_those_of_a_real_release(bootstrap: str) -> None:
    said = tool("BrokerApiVersionsCommand", "--bootstrap-server", bootstrap)
    assert re.search(r"127\.0\.0\.1:\d+ \(id: 1 rack: null isFenced: false\) -> \(", said)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", said)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", said)
    assert re.search(r"DescribeTopicPartitions\(75\): 0 \[usable: 0\]", said)
