"""Answers about topics that are encoded already, kept until the topic changes.

Images never change and share what is the same, so an entry counts exactly as long as the image has
the very topic that it was made of. What brokers do changes every entry, unless nothing that a
client is told of partitions depends on it.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from kraftline.broker.reach import Reach
from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.uuids import Uuid

# Bytes that are kept in all; and forms of answers, of which clients of one kind use one each.
_MOST_BYTES: Final = 128 * 1024 * 1024
_MOST_TABLES: Final = 12


class EncodedTopic(msgspec.Struct, frozen=True, gc=False):
    """`marks` are places in `data`, where whoever made it needs them again."""

    topic: TopicImage
    data: bytes
    marks: array[int] | None = None


class Everything(msgspec.Struct, frozen=True, gc=False):
    """All topics of an image in one piece."""

    topics: TopicsImage
    count: int
    data: bytes


Encode: TypeAlias = "Callable[[TopicImage, Reach], EncodedTopic]"


class Table:
    """Topics in one form, for the clients of one listener."""

    def __init__(self, reach: Reach, encode: Encode) -> None:
        self.reach = reach
        self.everything: Everything | None = None
        self.size = 0
        self._encode = encode
        self._topics: dict[Uuid, EncodedTopic] = {}

    def of(self, topic: TopicImage) -> EncodedTopic:
        found = self._topics.get(topic.id)
        if found is not None and found.topic is topic:
            return found
        made = self._encode(topic, self.reach)
        self.size += len(made.data) - (0 if found is None else len(found.data))
        self._topics[topic.id] = made
        return made

    def lacks(self, topics: Iterable[TopicImage]) -> int:
        """How many partitions of these would have to be encoded now."""
        known = self._topics
        lacking = 0
        for topic in topics:
            found = known.get(topic.id)
            if found is None or found.topic is not topic:
                lacking += len(topic.partitions)
        return lacking

    def forget(self, topics: Iterable[Uuid]) -> None:
        for each in topics:
            gone = self._topics.pop(each, None)
            if gone is not None:
                self.size -= len(gone.data)

    @property
    def total(self) -> int:
        return self.size + (0 if self.everything is None else len(self.everything.data))

    def empty(self) -> None:
        self._topics.clear()
        self.everything = None
        self.size = 0


class EncodedTopics:
    """A table for each form and listener that was asked for lately."""

    def __init__(self, most_bytes: int = _MOST_BYTES, most_tables: int = _MOST_TABLES) -> None:
        self._most_bytes = most_bytes
        self._most_tables = most_tables
        self._tables: OrderedDict[tuple[object, str], Table] = OrderedDict()

    def table(self, form: object, listener: str, cluster: ClusterImage, encode: Encode) -> Table:
        """The table of a form, which stands for all that `encode` depends on but the topic."""
        key = (form, listener)
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = Table(Reach(cluster, listener), encode)
            if len(self._tables) > self._most_tables:
                self._tables.popitem(last=False)
        elif found.reach.cluster is not cluster:
            reach = Reach(cluster, listener)
            if reach != found.reach:
                found = self._tables[key] = Table(reach, encode)
            else:
                found.reach = reach
        self._tables.move_to_end(key)
        self._trim()
        return found

    def forget(self, topics: Iterable[Uuid]) -> None:
        """Topics that are gone."""
        gone = list(topics)
        for table in self._tables.values():
            table.forget(gone)

    def _trim(self) -> None:
        """Keep within the limit: what was not used for longest goes first, then all."""
        total = sum([table.total for table in self._tables.values()])
        while total > self._most_bytes:
            table = next(iter(self._tables.values()))
            total -= table.total
            table.empty()
            if len(self._tables) > 1:
                self._tables.popitem(last=False)
