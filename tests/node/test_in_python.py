"""A node inside a Python program: `async with`, a plain `with`, and many of them."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import kraftline
from kraftline.errors import KraftlineError
from kraftline.node.topics import TopicRefused
from kraftline.schema.api.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.broker.talking import Talk


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nodes of this test put what is temporary; those of other processes do not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def round_trip(bootstrap: str, topic: str) -> bytes | None:
    """A record produced and read by a real client."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"hello", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is None or isinstance(value, bytes)
        return value
    finally:
        consumer.close()


def test_async_with_gives_a_node_to_the_loop_that_runs() -> None:
    async def main() -> None:
        async with kraftline.Node() as node:
            await node.create_topic("orders", 2)
            assert await asyncio.to_thread(round_trip, node.bootstrap, "orders") == b"hello"

    asyncio.run(main())


def test_plain_with_runs_a_node_in_a_thread() -> None:
    with kraftline.Node() as node:
        node.create_topic("orders")
        assert round_trip(node.bootstrap, "orders") == b"hello"
        assert any(each.name == "kraftline-node" for each in threading.enumerate())
    assert not any(each.name == "kraftline-node" for each in threading.enumerate())


def test_two_nodes_at_once_are_two_clusters() -> None:
    with kraftline.Node() as one, kraftline.Node() as other:
        assert one.bootstrap != other.bootstrap
        assert one.cluster_id != other.cluster_id
        one.create_topic("here")
        other.create_topic("here")


def test_settings_are_kafkas(tmp_path: Path) -> None:
    with kraftline.Node({"log.dirs": tmp_path / "data", "num.partitions": 3}) as node:
        assert node.node.config.whole("num.partitions") == 3
        node.create_topic("kept")
        cluster = node.cluster_id
    assert (tmp_path / "data" / "meta.properties").exists()
    with kraftline.Node({"log.dirs": tmp_path / "data"}) as node:
        assert node.cluster_id == cluster
        assert node.node.partitions == 1


def test_a_wrong_setting_is_said_at_once() -> None:
    with pytest.raises(KraftlineError, match=r"num\.partitions"):
        kraftline.Node({"num.partitions": "many"})


def test_a_start_that_fails_raises_and_leaves_nothing(temporary: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = kraftline.Node({"listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"})
        with pytest.raises(KraftlineError, match="in use"), node:
            pass
        assert not list(temporary.iterdir())
        with pytest.raises(KraftlineError, match="in use"):
            asyncio.run(node.start())
        assert not list(temporary.iterdir())


def test_a_topic_that_cannot_be_says_why() -> None:
    with kraftline.Node() as node:
        node.create_topic("orders")
        with pytest.raises(TopicRefused, match="already exists"):
            node.create_topic("orders")
        with pytest.raises(TopicRefused, match="Topic name is invalid"):
            node.create_topic("no/name")


def test_a_node_whose_broker_was_unregistered_stops_and_comes_back(tmp_path: Path) -> None:
    with kraftline.Node({"log.dirs": tmp_path}) as node:
        node.create_topic("orders")
        with Talk(("127.0.0.1", node.node.addresses[0].port)) as talk:
            told = talk.ask(UnregisterBrokerRequest(broker_id=1), 0)
        assert told == UnregisterBrokerResponse()
    with kraftline.Node({"log.dirs": tmp_path}) as node:
        assert round_trip(node.bootstrap, "orders") == b"hello"


def test_a_node_that_has_stopped_says_so() -> None:
    with kraftline.Node() as node:
        pass
    with pytest.raises(KraftlineError, match="does not run"):
        node.create_topic("late")


def test_importing_the_package_is_cheap() -> None:
    code = (
        "import sys, kraftline; assert 'kraftline.node' not in sys.modules and 'asyncio' not in "
        "sys.modules; kraftline.Node; assert 'kraftline.node' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_hundred_nodes_leave_nothing_behind(temporary: Path) -> None:
    with kraftline.Node():
        pass  # whatever is made once
    gc.collect()
    before = (open_files(), threading.active_count())
    ports = []
    for _ in range(100):
        with kraftline.Node() as node:
            ports += [node.node.addresses[0].port, node.node.controller_addresses[0].port]
            node.create_topic("orders")
            assert len(list(temporary.iterdir())) == 1
    gc.collect()
    assert (open_files(), threading.active_count()) == before
    assert not list(temporary.iterdir())
    for port in ports:
        with socket.socket() as channel:
            assert channel.connect_ex(("127.0.0.1", port)) != 0


def test_a_node_is_there_well_before_a_third_of_a_second() -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        with kraftline.Node():
            times.append(time.perf_counter() - began)
    assert min(times) < 0.3  # 0.02 on a quiet machine; the first of a process imports more


def test_many_nodes_of_one_loop_leave_no_task() -> None:
    async def main() -> None:
        async with kraftline.Node():
            pass
        gc.collect()
        files, tasks = open_files(), len(asyncio.all_tasks())
        for _ in range(10):
            async with kraftline.Node() as node:
                await node.create_topic("orders")
        gc.collect()
        assert (open_files(), len(asyncio.all_tasks())) == (files, tasks)

    asyncio.run(main())


def open_files() -> list[str]:
    """What this process has open, but for what it looks with."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}").partition(":")[0])
        except OSError:
            continue
    return sorted(found)
