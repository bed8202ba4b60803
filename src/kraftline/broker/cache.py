"""The metadata cache: the newest image, for everyone who answers. First of the publishers, so that
nobody acts on metadata that the broker does not tell yet.

A reader takes `image` once per request: images never change.
"""

from __future__ import annotations

from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher


class MetadataCache(MetadataPublisher):
    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY
        self.leader: LeaderAndEpoch = LeaderAndEpoch(None, -1)

    @property
    def name(self) -> str:
        return "MetadataCache"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        self.image = image

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        self.leader = leader

    async def close(self) -> None:
        """Nothing is held."""
