"""For the same requests of an administrator, real Kafka's metadata log and ours hold the same
records, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftline.schema.api.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraftline.schema.api.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kraftline.schema.types import Message
from tests.broker.admin_stories import grow, more
from tests.broker.config_stories import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    change,
    replace,
)
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.controller.topic_requests import create, delete, topic
from tests.oracle.kafka import HOST, KraftCluster

ONE, TWO = "logged-one", "logged-two"


def _feature(name: str, level: int, kind: int) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=(update,))


def _requests() -> Iterator[tuple[Message, int]]:
    settings = {"retention.ms": "1000", "min.insync.replicas": "1", "segment.ms": "5"}
    yield create(topic(ONE, 2, 1, settings), topic(TWO)), 7
    yield create(topic("logged-never"), validate_only=True), 7
    yield change((TOPIC, ONE, [("retention.ms", SET, "2000"), ("segment.ms", DELETE, None)])), 1
    yield change((TOPIC, ONE, [("retention.ms", SET, "2000")])), 1  # nothing new
    yield change((TOPIC, ONE, [("cleanup.policy", APPEND, "compact")])), 1
    yield change((TOPIC, ONE, [("cleanup.policy", SUBTRACT, "delete")])), 1
    yield change((TOPIC, TWO, [("min.insync.replicas", SET, "2"), ("segment.ms", SET, "9")])), 1
    yield change((TOPIC, TWO, [("segment.ms", SET, "x")])), 1
    yield change((TOPIC, TWO, [("segment.ms", SET, "8")]), validate_only=True), 1
    yield replace((TOPIC, ONE, {"retention.bytes": "5", "cleanup.policy": "compact"})), 2
    yield replace((TOPIC, TWO, {})), 2
    yield change((BROKER, "1", [("log.retention.ms", SET, "9000000")])), 1
    yield change((BROKER, "1", [("log.retention.ms", SET, "9000000")])), 1  # again
    yield change((BROKER, "", [("compression.type", SET, "gzip")])), 1
    yield change((BROKER, "", [("min.insync.replicas", SET, "1")])), 1
    yield change((BROKER, "", [("compression.type", DELETE, "")])), 1
    yield replace((BROKER, "1", {})), 2
    yield change((GROUP, "logged", [("consumer.session.timeout.ms", SET, "50000")])), 1
    yield replace((GROUP, "logged", {"consumer.heartbeat.interval.ms": "6000"})), 2
    yield change((METRICS, "logged", [("interval.ms", SET, "500"), ("metrics", SET, "*")])), 1
    yield replace((METRICS, "logged", {})), 2
    yield replace((GROUP, "logged", {})), 2
    yield grow(more(ONE, 4), more(TWO, 3, [(1,), (1,)])), 3
    yield grow(more(ONE, 9), validate_only=True), 3
    yield grow(more(ONE, 1)), 3
    elected = (TopicPartitions(topic=ONE, partitions=(0, 1)),)
    yield ElectLeadersRequest(topic_partitions=elected), 2
    moved = ReassignablePartition(partition_index=0, replicas=(1,))
    moves = ReassignableTopic(name=ONE, partitions=(moved,))
    yield AlterPartitionReassignmentsRequest(topics=(moves,)), 1
    yield _feature("streams.version", 0, 2), 2
    yield _feature("streams.version", 1, 1), 2
    yield _feature("metadata.version", 29, 2), 2
    yield delete(ONE, TWO), 5


def _logged(address: tuple[str, int], data: Path) -> list[LoggedBatch]:
    start = end_offset(data)
    with Talk(address) as talk:
        for request, version in _requests():
            talk.ask(request, version)
    # In one request several resources come in the order of random hashes.
    return [in_order(batch) for batch in read_batches(data, start)]


def test_the_logs_hold_the_same_records(tmp_path: Path, kafka_4_3: KraftCluster) -> None:
    theirs = _logged((HOST, kafka_4_3.port(1)), kafka_4_3.data(1))
    with running(tmp_path / "ours") as node:
        ours = _logged(node.address, tmp_path / "ours")
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        assert one == other, f"batch {number}"
    assert len(ours) == len(theirs) > 20
