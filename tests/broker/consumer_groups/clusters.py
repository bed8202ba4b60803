"""Clusters in memory: topics that come, grow and go."""

from __future__ import annotations

import random

from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.metadata import Provenance
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid


class Cluster:
    """`image` is the newest; `last` the delta that led to it."""

    def __init__(self, seed: int = 0) -> None:
        self.image: MetadataImage = EMPTY
        self.last = MetadataDelta(EMPTY)
        self._chance = random.Random(seed)
        self._offset = 0

    def topic(self, name: str, partitions: int) -> Uuid:
        id = Uuid(self._chance.randbytes(16))
        self._take(
            TopicRecord(name=name, topic_id=id),
            *(_partition(id, number) for number in range(partitions)),
        )
        return id

    def grow(self, name: str, partitions: int) -> None:
        known = self.image.topics.named(name)
        assert known is not None
        first = len(known.partitions)
        self._take(*(_partition(known.id, each) for each in range(first, partitions)))

    def remove(self, name: str) -> None:
        known = self.image.topics.named(name)
        assert known is not None
        self._take(RemoveTopicRecord(topic_id=known.id))

    def _take(self, *records: Message) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self._offset += len(records)
        self.image = delta.apply(Provenance(self._offset, 1, 1, True))
        self.last = delta


def _partition(topic: Uuid, number: int) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic,
        partition_id=number,
        replicas=(1,),
        isr=(1,),
        leader=1,
        directories=(Uuid(bytes(15) + b"\1"),),
    )
