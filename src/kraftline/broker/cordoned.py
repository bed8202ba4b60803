"""Log directories that shall get no new replicas: `cordoned.log.dirs`, which may change while the
broker runs. A publisher: the controller is told, and new logs go elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from kraftline.broker.partitions import Partitions
from kraftline.config.effective import Config
from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import BROKER
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.schema.uuids import Uuid

_KEY = "cordoned.log.dirs"


def cordoned_of(config: Config, directories: Mapping[str, Uuid]) -> tuple[Uuid, ...]:
    """Those that are named, or * for all."""
    named = config.texts(_KEY)
    paths = {os.path.abspath(each) for each in named}
    return tuple(
        identity for path, identity in directories.items() if named == ["*"] or path in paths
    )


class CordonedDirectories(MetadataPublisher):
    """`directories` are the ids of this broker's by their paths; `tell` is set by whoever can."""

    def __init__(
        self, configs: BrokerConfigs, directories: Mapping[str, Uuid], partitions: Partitions
    ) -> None:
        self.cordoned = cordoned_of(configs.started, directories)
        self.tell: Callable[[tuple[Uuid, ...]], None] | None = None
        self._configs = configs
        self._directories = directories
        self._partitions = partitions
        partitions.cordoned = frozenset(self.cordoned)

    @property
    def name(self) -> str:
        return "CordonedDirectories"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        own = {(BROKER, ""), (BROKER, str(self._configs.node_id))}
        if delta.configs is None or own.isdisjoint(delta.configs.changes):
            return
        found = cordoned_of(self._configs.running(image), self._directories)
        if set(found) == set(self.cordoned):
            return
        self.cordoned = found
        self._partitions.cordoned = frozenset(found)
        if self.tell is not None:
            self.tell(found)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        """Nothing is held."""
