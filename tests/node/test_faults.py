"""Faults on purpose, and what clients see of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kraftline
from kraftline.errors import KraftlineError
from kraftline.node.thread import NodeThread
from kraftline.schema.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraftline.schema.api.create_topics import CreatableTopic, CreateTopicsRequest
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.broker.talking import Closed, Talk
from tests.operation.test_metrics import get

SAID = ApiVersionsRequest(client_software_name="tests", client_software_version="1")


@pytest.fixture
def node() -> Iterator[NodeThread]:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as running:
        running.create_topic("orders")
        yield running


def talk_to(node: NodeThread) -> Talk:
    return Talk(("127.0.0.1", node.node.addresses[0].port))


def error_of(node: NodeThread, topic: str = "orders") -> int:
    """What a client gets that asks the leader of a partition for its end."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),)
    )
    with talk_to(node) as talk:
        (told,) = talk.ask_for(ListOffsetsResponse, request, 7).topics
    return told.partitions[0].error_code


def leader_epoch(node: NodeThread) -> int:
    partition = node.node.broker.partitions.get("orders", 0)
    assert partition is not None
    return partition.leader_epoch


def test_a_fenced_broker_leads_nothing_until_it_is_unfenced(
    node: NodeThread, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="kraftline")
    assert error_of(node) == ErrorCode.NONE
    node.faults.fence_broker()
    assert error_of(node) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    status, why = get(node, "/readyz")
    assert (status, "the broker is fenced" in why) == (503, True)
    assert get(node, "/healthz")[0] == 200
    node.faults.unfence_broker()
    assert error_of(node) == ErrorCode.NONE
    assert get(node, "/readyz")[0] == 200
    said = [each.getMessage() for each in caplog.records]
    assert [each for each in said if "fenced" in each] == [
        "broker 1 is fenced: it leads nothing",
        "broker 1 is unfenced",
    ]


def test_a_session_that_ends_gives_partitions_a_new_leader_epoch(node: NodeThread) -> None:
    before = leader_epoch(node)
    node.faults.expire_session()
    deadline = time.monotonic() + 60
    while error_of(node) != ErrorCode.NONE or leader_epoch(node) == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert leader_epoch(node) == before + 2  # led by nobody, and by this broker again


def test_a_failed_directory_takes_its_partitions_offline(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    with kraftline.Node({"log.dirs": directories}) as node:
        node.create_topic("first")
        node.create_topic("second")
        by_topic = {
            topic: Path(node.node.broker.partitions.get(topic, 0).log.directory).parent  # type: ignore[union-attr]  # it is there
            for topic in ("first", "second")
        }
        assert set(by_topic.values()) == set(directories)
        node.faults.fail_directory(by_topic["second"])
        assert error_of(node, "first") == ErrorCode.NONE
        assert error_of(node, "second") == ErrorCode.KAFKA_STORAGE_ERROR
        node.create_topic("third")
        assert error_of(node, "third") == ErrorCode.NONE
        with pytest.raises(KraftlineError, match="no log directory"):
            node.faults.fail_directory(tmp_path / "three")


def test_a_node_whose_only_directory_fails_does_not_go_on(node: NodeThread) -> None:
    node.faults.fail_directory()
    deadline = time.monotonic() + 60
    while node.failure is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert "all log dirs" in str(node.failure)


def test_answers_come_late(node: NodeThread) -> None:
    with talk_to(node) as talk:
        node.faults.delay_answers("ApiVersions", 0.2, times=1)
        began = time.monotonic()
        talk.ask_for(ApiVersionsResponse, SAID, 3)
        assert time.monotonic() - began >= 0.2
        node.faults.delay_answers("ApiVersions", 60)
        talk.ask(ListOffsetsRequest(replica_id=-1), 7)  # others do not wait
        node.faults.clear()
        talk.ask_for(ApiVersionsResponse, SAID, 3)


def test_a_dropped_answer_is_of_a_request_that_was_carried_out(node: NodeThread) -> None:
    node.faults.drop_answers("CreateTopics", times=1)
    topic = CreatableTopic(name="made", num_partitions=1, replication_factor=1)
    with talk_to(node) as talk, pytest.raises((Closed, OSError)):
        talk.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
    assert node.node.controller.image.topics.named("made") is not None
    with talk_to(node) as talk:
        (told,) = talk.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7).topics  # type: ignore[attr-defined]  # its answer
    assert told.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_fault_of_no_api_is_refused(node: NodeThread) -> None:
    with pytest.raises(KraftlineError, match="did you mean Produce"):
        node.faults.drop_answers("Produse")


def test_faults_are_for_programs_that_await_too() -> None:
    async def main() -> None:
        async with kraftline.Node() as node:
            await node.faults.fence_broker()
            assert node.broker.cache.image.cluster.brokers[1].fenced
            await node.faults.clear()
            assert not node.broker.cache.image.cluster.brokers[1].fenced

    asyncio.run(main())
