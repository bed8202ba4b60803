"""The metadata cache: the newest image, for everyone who answers. First of the publishers, so that
nobody acts on metadata that the broker does not tell yet.

A reader takes `image` once per request: images never change.
"""

from __future__ import annotations

import random

from kraftline.broker.encoded import EncodedTopics
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.topics import TopicsDelta, TopicsImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.metadata.registrations import BrokerRegistration, Listener


class MetadataCache(MetadataPublisher):
    """`encoded` are answers about topics as they go over the wire."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY
        self.leader: LeaderAndEpoch = LeaderAndEpoch(None, -1)
        self.encoded = EncodedTopics()
        self._names: list[str] | None = None  # of `image`, in order, once someone asked
        self._named = EMPTY.topics.ids

    @property
    def name(self) -> str:
        return "MetadataCache"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if delta.topics is not None:
            self._follow(delta.topics, image.topics)
        self.image = image

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        self.leader = leader

    async def close(self) -> None:
        """Nothing is held."""

    def names(self, topics: TopicsImage) -> list[str]:
        """The names of all topics, sorted; not to be changed."""
        if self._names is None or self._named is not topics.ids:
            self._names = sorted(topics.ids)
            self._named = topics.ids
        return self._names

    def _follow(self, delta: TopicsDelta, topics: TopicsImage) -> None:
        if delta.deleted:
            self.encoded.forget(delta.deleted)
        if topics.ids is self._named or self._names is None:
            return
        if self._named is delta.image.ids:
            # Almost in order already, which sorting makes good use of.
            gone = {each.name for each in delta.deleted.values()}.difference(topics.ids)
            kept = [name for name in self._names if name not in gone] if gone else self._names
            added = [name for name in delta.created if name not in delta.image.ids]
            self._names = sorted([*kept, *added])
            self._named = topics.ids
        else:
            self._names = None


def alive_brokers(image: MetadataImage, listener: str) -> list[tuple[BrokerRegistration, Listener]]:
    """Brokers that are not fenced and have the listener, by id, with their addresses."""
    return [
        (broker, at)
        for _, broker in sorted(image.cluster.brokers.items())
        if not broker.fenced and (at := broker.listener(listener)) is not None
    ]


def some_alive_broker(image: MetadataImage) -> int:
    """What clients are told to be the controller: any broker passes on what it is asked."""
    alive = [broker.id for broker in image.cluster.brokers.values() if not broker.fenced]
    return random.choice(alive) if alive else -1
