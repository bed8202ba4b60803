"""Everything that a broker's API functions need, in one place."""

from __future__ import annotations

from collections.abc import Callable

from kraftline.broker.cache import MetadataCache
from kraftline.broker.partitions import Partitions
from kraftline.config.effective import Config
from kraftline.controller.controller import Controller


class Broker:
    """`clock` gives the time in ms."""

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        config: Config,
        cache: MetadataCache,
        partitions: Partitions,
        controller: Controller,
        clock: Callable[[], int],
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.config = config
        self.cache = cache
        self.partitions = partitions
        self.controller = controller
        self.clock = clock
