"""CreateTopics and DeleteTopics requests, good and odd, for any node that is empty so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraftline.schema.api.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid

STRANGE_ID = Uuid(bytes(8) + b"\x11" * 8)


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, tuple[int, ...]] | list[tuple[int, tuple[int, ...]]] = (),  # type: ignore[assignment]  # none
) -> CreatableTopic:
    pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in pairs
        ),
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)


def delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)


def assigned(name: str, *pairs: tuple[int, tuple[int, ...]]) -> CreatableTopic:
    return topic(name, -1, -1, assignments=list(pairs))


def creations(broker: int) -> Iterator[tuple[Message, int]]:
    """`broker` is the id of the only one there is."""
    for version in range(2, 8):
        yield create(topic(f"plain-{version}", 3)), version
    yield create(topic("plain-7", 3)), 7
    yield create(topic("two-a"), topic("two-b", 2), topic("two-a", 5)), 7
    yield create(topic("def-0", -1, -1)), 4
    yield create(topic("def-1", -1, 1), topic("def-2", 2, -1)), 7
    # Names.
    for name in ("", ".", "..", "a b", "a" * 249, "b" * 250, "ä", "x/y", "../x", "a\0b"):
        yield create(topic(name)), 7
    yield create(topic("__cluster_metadata")), 7
    yield create(topic("__cluster_metadata"), topic("__cluster_metadata"), topic("beside")), 7
    yield create(topic("__consumer_offsets", 2)), 7
    yield create(topic("dots.and_lines")), 7
    yield create(topic("dots_and.lines")), 7
    yield create(topic("dots.and_lines")), 7
    yield create(topic("same.request"), topic("same_request")), 7
    yield create(topic("d1"), topic("d1"), topic("d2"), topic("d2"), topic("d3"), topic("ok-1")), 7
    # Numbers.
    for partitions in (0, -2, -1000):
        yield create(topic("numbers", partitions)), 7
    for replicas in (0, -2, 2, 3, 32767):
        yield create(topic("numbers", 1, replicas)), 7
    yield create(topic("numbers", 0, 0)), 7
    yield create(topic("large", 10_000)), 7
    yield create(topic("large", 10_001)), 7
    yield create(topic("large-1", 5_000), topic("large-2", 5_001), topic("large-3")), 7
    yield create(topic("large-1", 5_000), topic("large-2", 5_000)), 7
    yield create(topic("large-4", 400), topic("large-5", 0)), 7
    # Assignments.
    yield create(assigned("as-0", (0, (broker,)))), 7
    yield create(assigned("as-1", (1, (broker,)), (0, (broker,)), (2, (broker,)))), 7
    yield create(assigned("as-2", (0, (broker,)), (2, (broker,)))), 7
    yield create(assigned("as-2", (-1, (broker,)), (0, (broker,)))), 7
    yield create(assigned("as-2", (0, (broker,)), (0, (broker,)))), 7
    yield create(assigned("as-2", (0, ()))), 7
    yield create(assigned("as-2", (0, (broker, broker)))), 7
    yield create(assigned("as-2", (0, (broker, 77)))), 7
    yield create(assigned("as-2", (0, (77,)), (1, (broker,)))), 7
    yield create(topic("as-3", 1, -1, assignments={0: (broker,)})), 7
    yield create(topic("as-3", -1, 1, assignments={0: (broker,)})), 7
    yield create(topic("as-3", 1, 1, assignments={0: (broker,)})), 7
    yield create(), 7
    # Configs.
    for number, configs in enumerate(_configs()):
        yield create(topic(f"configs-{number}", 1, 1, configs)), 7
    yield create(topic("old-configs", 1, 1, {"retention.ms": "7"})), 2
    # Only looking.
    yield create(topic("validated", 2), topic("plain-2"), validate_only=True), 7
    yield create(topic("validated", 2, 1, {"retention.ms": "x"}), validate_only=True), 4
    yield create(topic("validated", 1)), 7


def _configs() -> Iterator[dict[str, str | None]]:
    yield {"retention.ms": "1000", "cleanup.policy": "compact"}
    yield {
        "segment.bytes": "2000000",
        "retention.bytes": "-1",
        "max.message.bytes": "5",
        "min.insync.replicas": "1",
        "flush.ms": "9",
        "preallocate": "true",
    }
    yield {"cleanup.policy": "compact,delete", "compression.type": "zstd"}
    yield {"min.insync.replicas": "2"}
    yield {"unclean.leader.election.enable": "true"}
    yield {"retention.ms": " 12 ", "preallocate": "FALSE"}
    yield {"message.timestamp.type": "LogAppendTime", "index.interval.bytes": "10"}
    yield {"leader.replication.throttled.replicas": "*"}
    yield {"leader.replication.throttled.replicas": "0:1,1:1"}
    yield {"no.such.config": "1"}
    yield {"no.such.config": "1", "nor.this": "2", "another": "3", "retention.ms": "x"}
    yield {"retention.ms": None}
    yield {"retention.ms": None, "flush.ms": None, "no.such": "1"}
    for name, value in (
        ("retention.ms", "x"),
        ("retention.ms", ""),
        ("retention.ms", "-2"),
        ("retention.ms", "9223372036854775808"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", "compact,compact"),
        ("compression.type", "brotli"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "2"),
        ("min.cleanable.dirty.ratio", "1e-9"),
        ("segment.bytes", "13"),
        ("segment.ms", "0"),
        ("preallocate", "maybe"),
        ("message.timestamp.type", "Never"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "-1"),
        ("compression.lz4.level", "18"),
        ("leader.replication.throttled.replicas", "1"),
        ("follower.replication.throttled.replicas", ""),
        ("remote.storage.enable", "true"),
        ("remote.storage.enable", "false"),
        ("local.retention.ms", "-5"),
        ("message.timestamp.before.max.ms", "-1"),
        ("index.interval.bytes", "-1"),
        ("max.message.bytes", "-1"),
        ("message.format.version", "3.0"),
        ("remote.log.copy.disable", "true"),
        ("remote.log.delete.on.disable", "true"),
        ("internal.segment.bytes", "1000"),
    ):
        yield {name: value}
    yield {"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"}
    yield {"cleanup.policy": "shred", "retention.ms": "x", "segment.ms": "0"}
    yield {
        "preallocate": "maybe",
        "compression.type": "brotli",
        "unclean.leader.election.enable": "1",
    }
    yield {"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10", "preallocate": "x"}
    yield {"local.retention.ms": "20", "retention.ms": "10"}


def deletions(ids: Mapping[str, Uuid]) -> Iterator[tuple[Message, int]]:
    """`ids` are those of the topics that the creations made."""
    for version in range(1, 6):
        yield delete(f"plain-{version + 1}"), version
    yield delete("plain-2", "no-such", "", "a b", "two-b", "def-0", "def-0"), 5
    yield delete("no-such"), 1
    yield by_id(DeleteTopicState(name="plain-7")), 6
    yield by_id(DeleteTopicState(topic_id=ids["as-0"])), 6
    yield by_id(DeleteTopicState(topic_id=ids["as-0"]), DeleteTopicState(name="as-0")), 6
    yield by_id(DeleteTopicState(topic_id=STRANGE_ID), DeleteTopicState()), 6
    yield by_id(DeleteTopicState(name="as-1", topic_id=ids["as-1"])), 6
    yield by_id(DeleteTopicState(name="as-1"), DeleteTopicState(topic_id=ids["as-1"])), 6
    twice = DeleteTopicState(topic_id=ids["as-1"])
    yield by_id(twice, twice, DeleteTopicState(name="as-1"), DeleteTopicState(name="def-1")), 6
    yield by_id(twice, DeleteTopicState(name="def-2"), DeleteTopicState(name="configs-1")), 6
    yield by_id(), 6
    yield by_id(DeleteTopicState(name="__cluster_metadata")), 6
    yield by_id(DeleteTopicState(name="dots.and_lines")), 6
    yield create(topic("dots_and.lines")), 7
    yield create(topic("as-1")), 7


def by_id(*topics: DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)
