"""All topics, by id and by name, and the deltas of those that changed.

Deletions are applied before changes: deleting a name and making it anew in one delta works.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from immutables import Map

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied, without
from kraftline.metadata.image.local_changes import (
    LocalChanges,
    add_deleted_topic,
    add_local_changes,
)
from kraftline.metadata.image.topic import TopicDelta, TopicImage
from kraftline.metadata.partition import PartitionRegistration, from_record, migrating
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.clear_elr_record import ClearElrRecord
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid


class TopicsImage(msgspec.Struct, frozen=True, gc=False):
    """Names lead to ids, and those to topics: a change inside a topic touches one map only."""

    by_id: Map[Uuid, TopicImage] = Map()
    ids: Map[str, Uuid] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.by_id and not self.ids

    def named(self, name: str) -> TopicImage | None:
        found = self.ids.get(name)
        return None if found is None else self.by_id.get(found)

    def partition(self, topic: Uuid, partition: int) -> PartitionRegistration | None:
        found = self.by_id.get(topic)
        return None if found is None else found.partition(partition)

    def losses(self, options: WriteOptions) -> Iterator[str]:
        version = options.version
        if not version.directory_assignment_supported and any(
            each.directories != migrating(len(each.directories)) for each in self._partitions()
        ):
            yield "the directory assignment state of one or more replicas"
        refused = options.elr and not version.elr_supported
        if refused and any(each.elr or each.last_known_elr for each in self._partitions()):
            # Kafka has no words for it: its writer refuses the record.
            yield "the eligible leader replicas of one or more partitions"

    def _partitions(self) -> Iterator[PartitionRegistration]:
        for topic in self.by_id.values():
            yield from topic.partitions

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        for topic in sorted(self.by_id.values(), key=lambda topic: (topic.name, topic.id)):
            yield from topic.write(options)


class TopicsDelta:
    """`changed` has every topic that is new or different, `deleted` those that the image has and
    that went; one made and removed within the delta leaves no trace."""

    __slots__ = ("changed", "created", "deleted", "image")

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.changed: dict[Uuid, TopicDelta] = {}
        self.deleted: dict[Uuid, TopicImage] = {}
        self.created: dict[str, Uuid] = {}

    def replay_topic(self, record: TopicRecord) -> None:
        # It starts from no partitions, also where there was such a topic before.
        self.changed[record.topic_id] = TopicDelta(TopicImage(record.name, record.topic_id))
        self.created[record.name] = record.topic_id

    def replay_partition(self, record: PartitionRecord) -> None:
        topic = self.changed.get(record.topic_id)
        if topic is None:
            topic = self._from_image(record.topic_id, record)
            topic.replay_partition(record)
            self.changed[record.topic_id] = topic  # only now: the record may have been refused
        elif topic.image.partitions or record.partition_id in topic.changes:
            topic.replay_partition(record)
        else:  # new, as in a snapshot all are
            topic.changes[record.partition_id] = from_record(record)

    def replay_change(self, record: PartitionChangeRecord) -> None:
        topic = self.changed.get(record.topic_id)
        if topic is None:
            topic = self._from_image(record.topic_id, record)
            topic.replay_change(record)
            self.changed[record.topic_id] = topic
        else:
            topic.replay_change(record)

    def replay_remove(self, record: RemoveTopicRecord) -> str:
        """The topic's name, whose configs go with it."""
        topic_id = record.topic_id
        before = self.image.by_id.get(topic_id)
        delta = self.changed.pop(topic_id, None)
        if before is not None:
            self.deleted[topic_id] = before
        if delta is not None:
            if self.created.get(delta.name) == topic_id:
                del self.created[delta.name]
            return delta.name
        if before is None:
            raise ReplayError(
                f"Unable to delete topic with id {topic_id}: no such topic found.", record=record
            )
        return before.name

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        if not record.topic_name:
            for topic_id in (*self.image.by_id, *self.created.values()):
                self._clear_elr(topic_id)
            return
        found = self.created.get(record.topic_name)
        if found is None:
            topic = self.image.named(record.topic_name)
            if topic is None:
                raise ReplayError(
                    f"Unable to clear elr for topic with name {record.topic_name}: no such topic "
                    "found.",
                    record=record,
                )
            found = topic.id
        self._clear_elr(found)

    def _clear_elr(self, topic_id: Uuid) -> None:
        if topic_id in self.changed:
            self.changed[topic_id].clear_elr()
        elif topic_id not in self.deleted:
            topic = self.image.by_id.get(topic_id)
            if topic and any(each.elr or each.last_known_elr for each in topic.partitions):
                delta = self.changed[topic_id] = TopicDelta(topic)
                delta.clear_elr()

    def _from_image(self, topic_id: Uuid, record: Message) -> TopicDelta:
        topic = self.image.by_id.get(topic_id)
        if topic is None or topic_id in self.deleted:
            raise ReplayError(f"Unable to find topic with id {topic_id}", record=record)
        return TopicDelta(topic)

    def finish_snapshot(self) -> None:
        for topic_id, topic in self.image.by_id.items():
            if topic_id not in self.changed:
                self.deleted[topic_id] = topic

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> TopicsImage:
        image = self.image
        by_id, gone = image.by_id, self.deleted
        fresh: dict[Uuid, TopicImage] = {}
        for topic_id, delta in self.changed.items():
            topic = delta.apply()
            if topic is delta.image and topic.partitions:
                continue  # a delta with partitions before it began from the image's topic
            if delta.image.partitions or topic != by_id.get(topic_id):
                fresh[topic_id] = topic
        if gone:
            # One that was removed and made again just as it was stays where it is.
            by_id = without(by_id, [key for key in gone if key not in self.changed])
        if len(fresh) == 1:
            by_id = by_id.set(*fresh.popitem())
        elif fresh:
            by_id = by_id.update(fresh)
        ids = image.ids
        if gone:
            ids = without(ids, {topic.name for topic in gone.values()}.difference(self.created))
        if self.created:
            ids = applied(ids, self.created)
        return image if by_id is image.by_id and ids is image.ids else TopicsImage(by_id, ids)

    def local_changes(self, broker: int) -> LocalChanges:
        """What this delta means to one broker."""
        out = LocalChanges()
        for topic in self.changed.values():
            add_local_changes(out, broker, topic.image, topic.changes)
        for deleted in self.deleted.values():
            add_deleted_topic(out, broker, deleted)
        return out
