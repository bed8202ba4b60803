"""The hash of a group's topics is Kafka's, with racks and without."""

from __future__ import annotations

import random

import pytest

from kraftline.broker.coordinators.groups.consumer.hashing import TopicHashes, topic_hash
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.register_broker_record import RegisterBrokerRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.deciding import GroupDecisions

pytestmark = pytest.mark.oracle


def some_cluster(chance: random.Random) -> list[Versioned]:
    records: list[Versioned] = [
        (RegisterBrokerRecord(broker_id=number, broker_epoch=number, rack=rack), 3)
        for number, rack in enumerate(["zürich", "b", None, "a"])
    ]
    for name in ("orders", "payments", "a", "x" * 249):
        id = Uuid(chance.randbytes(16))
        records.append((TopicRecord(name=name, topic_id=id), 0))
        for partition in range(chance.choice([1, 2, 13])):
            replicas = tuple(chance.sample(range(6), chance.randint(1, 5)))
            record = PartitionRecord(
                partition_id=partition,
                topic_id=id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=tuple(Uuid(chance.randbytes(16)) for _ in replicas),
            )
            records.append((record, 1))
    return records


def test_topics_and_groups_hash_as_in_kafka(decisions: GroupDecisions) -> None:
    chance = random.Random(16)
    hashes = TopicHashes()
    for _ in range(20):
        records = some_cluster(chance)
        delta = MetadataDelta(MetadataImage())
        for record, _ in records:
            delta.replay(record)
        image = delta.apply(MetadataImage().provenance)
        names = [name for name in image.topics.ids if chance.random() < 0.8]
        expected, together = decisions.hashes(records, names)
        got = {}
        for name in names:
            topic = image.topics.named(name)
            assert topic is not None
            got[name] = topic_hash(topic, image.cluster)
        assert got == expected
        assert hashes.of([*names, "not there"], image) == together
