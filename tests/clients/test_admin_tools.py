"""Kafka's own admin tools against our node, and the same against real Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.adapters import Confluent
from tests.oracle.driver import wait_until
from tests.oracle.java import JavaFailed
from tests.oracle.tools import KafkaTools

pytestmark = pytest.mark.oracle
NewName = Callable[[], str]
Tool = Callable[..., str]
CONFIGS = "kafka.admin.ConfigCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools() as tools:
        yield tools


@pytest.fixture
def tool(tools: KafkaTools, bootstrap: str) -> Tool:
    """A tool's output, by its class and options."""

    def call(name: str, *arguments: str) -> str:
        return tools.call(name, "--bootstrap-server", bootstrap, *arguments)

    return call


def test_topics_get_more_partitions(tool: Tool, bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, 2, {"retention.ms": "100000"})
    assert tool("TopicCommand", "--alter", "--topic", name, "--partitions", "3") == ""
    said = tool("TopicCommand", "--describe", "--topic", name)
    assert re.search(
        r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention.ms=100", said
    )


def test_configs_of_topics_are_changed_and_described(
    tool: Tool, bootstrap: str, new_name: NewName
) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, 1, {"retention.ms": "100000"})
    said = tool(
        *(CONFIGS, "--alter", "--topic", name, "--delete-config", "retention.ms"),
        *("--add-config", "cleanup.policy=[compact,delete],segment.ms=5000"),
    )
    assert said.strip() == f"Completed updating config for topic {name}."
    assert tool(CONFIGS, "--describe", "--topic", name).splitlines() == [
        f"Dynamic configs for topic {name} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  segment.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=5000}",
    ]
    with pytest.raises(JavaFailed, match="Not a number of type LONG"):
        tool(CONFIGS, "--alter", "--topic", name, "--add-config", "segment.ms=x")


def test_configs_of_brokers_are_changed_and_described(tool: Tool) -> None:
    change = ("--add-config", "log.cleaner.threads=2")
    said = tool(CONFIGS, "--alter", "--broker", "1", *change)
    assert said.strip() == "Completed updating config for broker 1."
    wanted = "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
    # A real broker takes its time.
    wait_until(lambda: wanted in tool(CONFIGS, "--describe", "--broker", "1"), wanted)
    said = tool(CONFIGS, "--describe", "--broker-defaults")
    assert "  min.insync.replicas=1 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER" in said
    tool(CONFIGS, "--alter", "--broker", "1", "--delete-config", "log.cleaner.threads")


def test_features_are_described_and_changed(tool: Tool) -> None:
    said = tool("FeatureCommand", "describe")
    version = r"metadata.version\s+SupportedMinVersion: 3.3-IV3\s+SupportedMaxVersion: 4.3-IV0\s+"
    assert re.search(rf"Feature: {version}FinalizedVersionLevel: 4.3-IV0", said)
    said = tool("FeatureCommand", "downgrade", "--feature", "streams.version=0")
    assert said.strip() == "streams.version was downgraded to 0."
    with pytest.raises(JavaFailed, match="it might delete metadata information"):
        tool("FeatureCommand", "downgrade", "--metadata", "4.2")


def test_leaders_are_elected(tool: Tool, bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name)
    one = ("--topic", name, "--partition", "0")
    said = tool("LeaderElectionCommand", "--election-type", "preferred", *one)
    assert said.strip() == f"Valid replica already elected for partitions {name}-0"
    assert (
        tool("LeaderElectionCommand", "--election-type", "unclean", "--all-topic-partitions") == ""
    )


def test_partitions_are_reassigned(
    tool: Tool, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name)
    plan = tmp_path / "plan.json"
    wanted = {"topic": name, "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    given = ("--reassignment-json-file", str(plan))
    said = tool(REASSIGN, *given, "--execute")
    assert f"Successfully started partition reassignment for {name}-0" in said
    said = tool(REASSIGN, *given, "--verify")
    assert f"Reassignment of partition {name}-0 is completed." in said
    assert "No partition reassignments found." in tool(REASSIGN, "--list")


def test_the_quorum_is_described(tool: Tool) -> None:
    said = tool("MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId: +1\n", said)
    assert re.search(r"MaxFollowerLag: +0\n", said)
    voters = r'\[\{"id": 1, "directoryId": "[\w-]{22}", "endpoints": \["CONTROLLER://127.0.0.1:\d+"\]\}\]'
    assert re.search(rf"CurrentVoters: +{voters}\nCurrentObservers: +\[\]\n", said)


def test_the_cluster_is_described(tools: KafkaTools, bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    assert tools.call("ClusterTool", "cluster-id", *server).startswith("Cluster ID: ")
    with pytest.raises(JavaFailed, match="Broker ID 7 is not currently registered"):
        tools.call("ClusterTool", "unregister", *server, "--id", "7")
