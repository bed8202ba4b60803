"""How a group sees that its topics have changed: one number over all of them.

Made as Kafka makes it (XXH3 of 64 bits), since it is written into the group's record: after a
change of hands between the two, groups do not rebalance.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import xxhash

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.image.topic import TopicImage

_MAGIC: Final = b"\0"
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")


def topic_hash(topic: TopicImage, cluster: ClusterImage) -> int:
    """Over its id, its name, its partitions, and the racks that these are on."""
    parts = [
        _MAGIC,
        # Numbers are little-endian here, and ids two numbers.
        topic.id[7::-1],
        topic.id[:7:-1],
        _text(topic.name),
        _INT.pack(len(topic.partitions)),
    ]
    for number, partition in topic.items():
        parts.append(_INT.pack(number))
        racks = [
            rack
            for replica in partition.replicas
            if (broker := cluster.brokers.get(replica)) is not None
            and (rack := broker.rack) is not None
        ]
        for rack in sorted(racks):
            parts += (_INT.pack(_length(rack)), _text(rack))
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


class TopicHashes:
    """The hashes of topics, remembered as long as these stay the same."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, ClusterImage, int]] = {}

    def of(self, names: Iterable[str], image: MetadataImage) -> int:
        """The hash of those topics that exist; 0 where none does."""
        found = b"".join(
            _LONG.pack(hashed)
            for name in sorted(names)
            if (hashed := self._of_topic(name, image)) is not None
        )
        return _signed(xxhash.xxh3_64_intdigest(found)) if found else 0

    def _of_topic(self, name: str, image: MetadataImage) -> int | None:
        topic = image.topics.named(name)
        if topic is None:
            self._known.pop(name, None)
            return None
        known = self._known.get(name)
        if known is not None and known[0] is topic and known[1] is image.cluster:
            return known[2]
        hashed = topic_hash(topic, image.cluster)
        self._known[name] = topic, image.cluster, hashed
        return hashed


def _text(text: str) -> bytes:
    """As UTF-16 units, with their number behind."""
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(_length(text))


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
