"""What a change of topics means to one broker: what it now leads, follows, or must delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kraftline.metadata.partition import PartitionRegistration
from kraftline.schema.uuids import Uuid

if TYPE_CHECKING:
    from kraftline.metadata.image.topic import TopicImage


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class TopicIdPartition(NamedTuple):
    topic_id: Uuid
    topic: str
    partition: int


class LocalPartition(NamedTuple):
    topic_id: Uuid
    partition: PartitionRegistration


class LocalChanges(msgspec.Struct):
    """`elected_leaders` are those of `leaders` with a new leader epoch; others only had their
    replicas or ISR changed. `directory_ids` has partitions new to the cluster, and those whose
    directory on this broker is another than before."""

    deletes: set[TopicPartition] = msgspec.field(default_factory=set)
    elected_leaders: dict[TopicPartition, LocalPartition] = msgspec.field(default_factory=dict)
    leaders: dict[TopicPartition, LocalPartition] = msgspec.field(default_factory=dict)
    followers: dict[TopicPartition, LocalPartition] = msgspec.field(default_factory=dict)
    topic_ids: dict[str, Uuid] = msgspec.field(default_factory=dict)
    directory_ids: dict[TopicIdPartition, Uuid] = msgspec.field(default_factory=dict)


def add_local_changes(
    out: LocalChanges,
    broker: int,
    before: TopicImage,
    changes: Mapping[int, PartitionRegistration],
) -> None:
    """Sort the changed partitions of one topic into `out`."""
    name, topic_id = before.name, before.id
    for number, after in changes.items():
        old = before.partition(number)
        where = TopicPartition(name, number)
        if broker not in after.replicas:
            if old is not None and broker in old.replicas:
                out.deletes.add(where)
            continue
        if old is None or old.partition_epoch != after.partition_epoch:
            out.topic_ids[name] = topic_id
            if after.leader == broker:
                local = out.leaders[where] = LocalPartition(topic_id, after)
                if old is None or old.leader_epoch != after.leader_epoch:
                    out.elected_leaders[where] = local
            else:
                out.followers[where] = LocalPartition(topic_id, after)
        directory = after.directory(broker)
        assert directory is not None  # it is a replica
        # As in Kafka, a replica that moved here is not among them.
        if old is None or old.directory(broker) not in (None, directory):
            out.directory_ids[TopicIdPartition(topic_id, name, number)] = directory


def add_deleted_topic(out: LocalChanges, broker: int, topic: TopicImage) -> None:
    for number, partition in topic.items():
        if broker in partition.replicas:
            out.deletes.add(TopicPartition(topic.name, number))
