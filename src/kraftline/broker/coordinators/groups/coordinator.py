"""This broker's part of the groups: the partitions of `__consumer_offsets` that it leads."""

from __future__ import annotations

from collections.abc import Callable

from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.shards import Shards
from kraftline.broker.partitions import Partitions
from kraftline.config.effective import Config
from kraftline.records.record import Codec
from kraftline.schema.coordinator.frame import OFFSETS


class GroupCoordinator:
    """`shards` has to be told of metadata, after `partitions`."""

    def __init__(
        self,
        config: Config,
        cache: MetadataCache,
        partitions: Partitions,
        clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._cache = cache
        codec = Codec(config.whole("offsets.topic.compression.codec"))
        self.shards: Shards[GroupsState] = Shards(OFFSETS, partitions, self._state, clock, codec)

    def _state(self, shard: Shard[GroupsState]) -> GroupsState:
        return GroupsState(shard, self._config, lambda: self._cache.image)
