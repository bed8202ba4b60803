"""Replicas go from one log directory to another while producers and consumers go on."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from kraftline.errors import Truncated
from kraftline.records import batches
from kraftline.schema.api.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kraftline.schema.api.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kraftline.schema.api.fetch import FetchResponse
from kraftline.schema.api.produce import ProduceResponse
from kraftline.storage.log import PartitionLog
from tests.broker.running import Running, create_topic, running
from tests.broker.stories import batch, fetch, produce, wanted
from tests.broker.talking import Talk
from tests.broker.test_disks import Topic
from tests.broker.test_waiting import until
from tests.oracle.tools import KafkaTools

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def two(path: Path) -> dict[str, str]:
    return {"log.dirs": f"{path / 'one'},{path / 'two'}"}


def where(node: Running, topic: str) -> str:
    """The name of the directory that a partition's log is in."""
    with Talk(node.address) as talk:
        said = talk.ask_for(DescribeLogDirsResponse, DescribeLogDirsRequest(topics=None), 4)
    [found] = [
        os.path.basename(each.log_dir)
        for each in said.results
        for known in each.topics
        for partition in known.partitions
        if known.name == topic and not partition.is_future_key
    ]
    return found


def _is_at(node: Running, topic: str, directory: str) -> bool:
    return where(node, topic) == directory


def other(node: Running, topic: str) -> str:
    return {"one": "two", "two": "one"}[where(node, topic)]


def move(node: Running, topic: str, path: Path) -> int:
    request = AlterReplicaLogDirsRequest(
        dirs=(
            AlterReplicaLogDir(
                path=str(path), topics=(AlterReplicaLogDirTopic(name=topic, partitions=(0,)),)
            ),
        )
    )
    with Talk(node.address) as talk:
        [said] = talk.ask_for(AlterReplicaLogDirsResponse, request, 2).results
    return said.partitions[0].error_code


def values(node: Running, topic: Topic) -> list[bytes | None]:
    """What a consumer reads, from the beginning to the end."""
    found: list[bytes | None] = []
    offset = 0
    with Talk(node.address) as talk:
        while True:
            [said] = talk.ask_for(FetchResponse, fetch(topic, wanted(0, offset)), 12).responses
            data = said.partitions[0].records or b""
            if not data:
                return found
            with suppress(Truncated):  # an answer may end with half a batch
                for each in batches(data):
                    found += [record.value for record in each.records() if record.offset >= offset]
                    offset = each.next_offset


def known_directory(node: Running, topic: Topic) -> object:
    """The directory that the metadata has."""
    image = node.node.broker.cache.image
    partition = image.topics.partition(topic[1], 0)
    assert partition is not None
    return partition.directory(node.node.node_id)


@pytest.mark.parametrize("disk", ["quick", "slow"])
def test_a_replica_moves_while_records_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str
) -> None:
    if disk == "slow":
        quickly = PartitionLog.flush

        def slowly(log: PartitionLog) -> int:
            time.sleep(0.2)  # records come in meanwhile, more than are moved while all wait
            return quickly(log)

        monkeypatch.setattr(PartitionLog, "flush", slowly)
    name, sent = "moving", 0
    stop = threading.Event()
    with running(tmp_path, two(tmp_path)) as node:
        topic = name, create_topic(node.address, name, {"segment.bytes": "1048576"})

        def send() -> None:
            nonlocal sent
            with Talk(node.address) as talk:
                while not stop.is_set():
                    data = batch(b"%08d" % sent + bytes(5000))
                    [said] = talk.ask_for(
                        ProduceResponse, produce(topic, [(0, data)], acks=-1), 9
                    ).responses
                    assert said.partition_responses[0].base_offset == sent
                    sent += 1

        sender = threading.Thread(target=send)
        sender.start()
        until(lambda: sent > 500)
        for _ in range(3):
            target = other(node, name)
            assert move(node, name, tmp_path / target) == 0
            until(partial(_is_at, node, name, target))
        stop.set()
        sender.join()
        logs = node.node.broker.partitions.logs
        at = next(key for key, each in logs.items() if each.path.endswith(target))
        until(lambda: known_directory(node, topic) == at)
        wanted_values = [b"%08d" % n + bytes(5000) for n in range(sent)]
        assert values(node, topic) == wanted_values
    assert not list(tmp_path.glob("*/*-future"))
    with running(tmp_path, two(tmp_path)) as node:
        assert where(node, name) == target
        assert values(node, topic) == wanted_values


def test_a_move_is_given_up_for_another_or_with_its_topic(tmp_path: Path) -> None:
    with running(tmp_path, two(tmp_path)) as node:
        topics = [(name, create_topic(node.address, name)) for name in ("stays", "goes")]
        with Talk(node.address) as talk:
            for topic in topics:
                for _ in range(10):
                    data = batch(bytes(100_000))
                    talk.ask_for(ProduceResponse, produce(topic, [(0, data)], acks=-1), 9)

        def slowly() -> None:
            node.node.broker.partitions.moves.bytes_per_second = 1000

        node.run(slowly)
        home = {name: where(node, name) for name, _ in topics}
        for name, _ in topics:
            assert move(node, name, tmp_path / other(node, name)) == 0
        until(lambda: len(list(tmp_path.glob("*/*-future"))) == 2)
        assert move(node, "stays", tmp_path / home["stays"]) == 0
        with Talk(node.address) as talk:
            gone = DeleteTopicsRequest(topic_names=("goes",), timeout_ms=10_000)
            talk.ask_for(DeleteTopicsResponse, gone, 5)
        until(lambda: not list(tmp_path.glob("*/*-future")))
        assert where(node, "stays") == home["stays"]
        assert len(values(node, topics[0])) == 10


def test_a_move_goes_on_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, two(tmp_path)) as node:
        topic = "resumed", create_topic(node.address, "resumed")
        with Talk(node.address) as talk:
            for _ in range(10):
                talk.ask_for(ProduceResponse, produce(topic, [(0, batch(bytes(9)))], acks=-1), 9)
        home, target = where(node, "resumed"), other(node, "resumed")
    # As a broker that was killed leaves it.
    left = tmp_path / target / f"resumed-0.{'b' * 32}-future"
    left.mkdir()
    (left / "partition.metadata").write_bytes(
        (tmp_path / home / "resumed-0" / "partition.metadata").read_bytes()
    )
    with running(tmp_path, two(tmp_path)) as node:
        until(lambda: where(node, "resumed") == target)
        until(lambda: not left.exists())
        assert len(values(node, topic)) == 10


def test_of_two_copies_that_a_crash_left_one_goes(tmp_path: Path) -> None:
    with running(tmp_path, two(tmp_path)) as node:
        topic = "twice", create_topic(node.address, "twice")
        with Talk(node.address) as talk:
            talk.ask_for(ProduceResponse, produce(topic, [(0, batch())], acks=-1), 9)
        home, target = where(node, "twice"), other(node, "twice")
    shutil.copytree(tmp_path / home / "twice-0", tmp_path / target / "twice-0")
    with running(tmp_path, two(tmp_path)) as node:
        assert where(node, "twice") == home
        assert values(node, topic) == [b"value"]
        assert not (tmp_path / target / "twice-0").exists()


@pytest.mark.oracle
def test_kafkas_tool_moves_a_replica(tmp_path: Path) -> None:
    with KafkaTools() as tools, running(tmp_path, two(tmp_path)) as node:
        topic = "by-tool", create_topic(node.address, "by-tool")
        with Talk(node.address) as talk:
            talk.ask_for(ProduceResponse, produce(topic, [(0, batch())], acks=-1), 9)
        target = other(node, "by-tool")
        plan = {
            "topic": "by-tool",
            "partition": 0,
            "replicas": [1],
            "log_dirs": [str(tmp_path / target)],
        }
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [plan]}))
        given = (
            *("--bootstrap-server", f"127.0.0.1:{node.address[1]}"),
            *("--reassignment-json-file", str(tmp_path / "plan.json")),
        )
        said = tools.call(REASSIGN, *given, "--execute")
        started = f"Successfully started moving log directory to {tmp_path / target} for replica"
        assert f"{started} by-tool-0 with broker 1" in said
        until(lambda: where(node, "by-tool") == target)
        said = tools.call(REASSIGN, *given, "--verify")
        assert "Reassignment of replica by-tool-0-1 completed successfully." in said
