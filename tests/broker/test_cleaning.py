"""Compaction in a node that runs: topics, configs and metrics as clients see them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

import kraftline
from kraftline.node.thread import NodeThread
from kraftline.storage.cleaner.cleaner import Cleaner
from kraftline.storage.log import PartitionLog

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


@pytest.fixture
def node() -> Iterator[NodeThread]:
    settings = {"log.cleaner.backoff.ms": "50", "kraftline.metrics.listener": "0"}
    with kraftline.Node(settings) as running:
        yield running


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def cleaner_of(node: NodeThread) -> Cleaner:
    found = node.node.broker.partitions.cleaner_threads.cleaner
    assert found is not None
    return found


def log_of(node: NodeThread, topic: str) -> PartitionLog:
    found = node.node.broker.partitions.get(topic, 0)
    assert found is not None
    return found.log


def produce(node: NodeThread, topic: str, rounds: int, keys: int = 5, ago: int = 10_000) -> None:
    """So many values for each key, the last of them in a segment of their own."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5})
    now = int(time.time() * 1000) - ago
    for number in range(rounds):
        for key in range(keys):
            producer.produce(topic, b"%d" % number, b"k%d" % key, partition=0, timestamp=now)
    assert producer.flush(30) == 0
    log_of(node, topic).roll()


def consumed(node: NodeThread, topic: str) -> list[tuple[int | None, bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        problem = message.error()
        if problem is not None:
            assert problem.code() == KafkaError._PARTITION_EOF, problem
            break
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def test_only_the_last_of_each_key_is_read(node: NodeThread) -> None:
    node.create_topic("t", configs=COMPACTED)
    produce(node, "t", 40)
    until(lambda: cleaner_of(node).first_dirty_offset(log_of(node, "t")) == 200)
    assert consumed(node, "t") == [(195 + n, b"k%d" % n, b"39") for n in range(5)]
    checkpoint = Path(log_of(node, "t").directory).parent / "cleaner-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\nt 0 200\n"
    produce(node, "t", 1)
    until(lambda: cleaner_of(node).first_dirty_offset(log_of(node, "t")) == 205)
    assert consumed(node, "t") == [(200 + n, b"k%d" % n, b"0") for n in range(5)]


def test_a_record_without_a_key_is_refused(node: NodeThread) -> None:
    node.create_topic("t", configs=COMPACTED)
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": node.bootstrap})
    producer.produce("t", b"v", on_delivery=lambda error, _: told.append(error))
    producer.flush(30)
    assert [error and error.code() for error in told] == [KafkaError.INVALID_RECORD]


def test_a_topic_that_becomes_compacted_is_cleaned(node: NodeThread) -> None:
    node.create_topic("t")
    produce(node, "t", 10)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in COMPACTED.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)
    until(lambda: log_of(node, "t").config.compact)
    until(lambda: cleaner_of(node).first_dirty_offset(log_of(node, "t")) == 50)
    assert len(consumed(node, "t")) == 5


def test_a_deleted_topic_is_forgotten(node: NodeThread) -> None:
    node.create_topic("t", configs=COMPACTED)
    produce(node, "t", 10)
    log = log_of(node, "t")
    until(lambda: cleaner_of(node).first_dirty_offset(log) == 50)
    checkpoint = Path(log.directory).parent / "cleaner-offset-checkpoint"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics(["t"])["t"].result(30)
    until(lambda: checkpoint.read_text() == "0\n0\n")
    assert cleaner_of(node).first_dirty_offset(log) is None


def test_settings_change_while_it_runs(node: NodeThread) -> None:
    def alter(name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)

    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    broker = str(node.node.node_id)
    threads = node.node.broker.partitions.cleaner_threads
    alter("log.cleaner.threads", "2")
    until(lambda: cleaner_of(node).settings.threads == 2)
    alter("log.cleaner.io.max.bytes.per.second", "1000000")
    until(lambda: cleaner_of(node).throttle.bytes_per_second == 1_000_000)
    assert threads.dead == 0
    node.create_topic("t", configs=COMPACTED)
    produce(node, "t", 10)
    until(lambda: cleaner_of(node).first_dirty_offset(log_of(node, "t")) == 50)
    with pytest.raises(KafkaException, match="cannot be increased to more than double"):
        alter("log.cleaner.threads", "5")


def test_without_a_cleaner_nothing_is_cleaned() -> None:
    with kraftline.Node({"log.cleaner.enable": "false"}) as node:
        assert node.node.broker.partitions.cleaner_threads.cleaner is None
        node.create_topic("t", configs=COMPACTED)
        produce(node, "t", 2)


def test_metrics_tell_of_it(node: NodeThread) -> None:
    node.create_topic("t", configs=COMPACTED)
    produce(node, "t", 40)
    until(lambda: cleaner_of(node).first_dirty_offset(log_of(node, "t")) == 200)
    assert node.node.operation is not None
    url = f"http://127.0.0.1:{node.node.operation.port}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if "logcleaner" in line]
    found = {
        line.partition(" ")[0].partition("{")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if not line.startswith("#")
    }
    assert 0 < found["kafka_log_logcleaner_cleaner_recopy_percent"] < 50
    assert found["kafka_log_logcleaner_deadthreadcount"] == 0
    assert found["kafka_log_logcleanermanager_uncleanable_partitions_count"] == 0
    assert found["kafka_log_logcleanermanager_uncleanable_bytes"] == 0
    assert found["kafka_log_logcleanermanager_max_dirty_percent"] <= 100


def test_committed_offsets_outlive_their_compaction(tmp_path: Path) -> None:
    settings = {
        "log.dirs": str(tmp_path / "data"),
        "log.cleaner.backoff.ms": "50",
        "offsets.topic.num.partitions": "1",
    }

    def group(node: NodeThread) -> Consumer:
        wanted = {"bootstrap.servers": node.bootstrap, "group.id": "g", "enable.auto.commit": False}
        return Consumer(wanted)

    with kraftline.Node(settings) as node:
        node.create_topic("t")
        consumer = group(node)
        for offset in range(1, 60):
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        consumer.close()
        log = log_of(node, "__consumer_offsets")
        log.roll()
        end, size = log.end_offset, log.size
        until(lambda: cleaner_of(node).first_dirty_offset(log) == end)
        assert log.size < size / 10
    with kraftline.Node(settings) as node:
        consumer = group(node)
        assert [each.offset for each in consumer.committed([TopicPartition("t", 0)], 60)] == [59]
        consumer.close()


def test_transactions_are_read_as_before_their_compaction(node: NodeThread) -> None:
    node.create_topic("t", configs=COMPACTED)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    for number in range(12):
        producer.begin_transaction()
        for key in range(4):
            producer.produce("t", b"%d" % number, b"k%d" % key, partition=0)
        assert producer.flush(60) == 0
        if number % 3 == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    log = log_of(node, "t")
    log.roll()
    until(lambda: cleaner_of(node).first_dirty_offset(log) == log.end_offset)
    # The last committed is the eleventh: ten of five offsets, a marker included, are before it.
    assert consumed(node, "t") == [(50 + n, b"k%d" % n, b"10") for n in range(4)]
    # And the producer goes on where it was.
    producer.begin_transaction()
    producer.produce("t", b"new", b"k0", partition=0)
    producer.commit_transaction(60)
    assert consumed(node, "t")[-1] == (60, b"k0", b"new")
