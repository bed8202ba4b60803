"""This broker's part of the groups: the partitions of `__consumer_offsets` that it leads.

What groups do is imported with the first of these partitions: a node without groups starts quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.groups.counts import Counts
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.shards import Shards
from kraftline.broker.partitions import Partitions
from kraftline.config.effective import Config
from kraftline.records.record import Codec
from kraftline.schema.coordinator.frame import OFFSETS

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.consumer.settings import Settings
    from kraftline.broker.coordinators.groups.state import GroupsState


class GroupCoordinator:
    """`shards` has to be told of metadata, after `partitions`. `session_timeouts` are those that
    members of classic groups may ask for. `counts` are of everything since the start."""

    def __init__(
        self,
        config: Config,
        cache: MetadataCache,
        partitions: Partitions,
        clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._cache = cache
        self._max_metadata = config.whole("offset.metadata.max.bytes")
        self.counts = Counts()
        self.session_timeouts = range(
            config.whole("group.min.session.timeout.ms"),
            config.whole("group.max.session.timeout.ms") + 1,
        )
        codec = Codec(config.whole("offsets.topic.compression.codec"))
        self.shards: Shards[GroupsState] = Shards(OFFSETS, partitions, self._state, clock, codec)

    @cached_property
    def consumer(self) -> Settings:
        """What groups of the newer protocol are kept by."""
        from kraftline.broker.coordinators.groups.consumer.settings import Settings

        return Settings(self._config)

    def is_too_large(self, metadata: str) -> bool:
        """Has what is kept beside an offset more characters, of Java's kind, than it may have?"""
        if metadata.isascii():
            return len(metadata) > self._max_metadata
        return len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * self._max_metadata

    def _state(self, shard: Shard[GroupsState]) -> GroupsState:
        from kraftline.broker.coordinators.groups.state import GroupsState

        return GroupsState(
            shard, self._config, lambda: self._cache.image, self.counts, self.consumer
        )
