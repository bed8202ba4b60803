"""Those who act on metadata: each gets every new image, in the order of installation."""

from __future__ import annotations

from typing import Protocol

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader.manifests import LeaderAndEpoch, Manifest


class MetadataPublisher(Protocol):
    """Called by the loader's task alone, one call at a time. While a publisher works, all metadata
    waits: what takes long belongs elsewhere. Subclasses say what they do not override."""

    @property
    def name(self) -> str:
        """Unique among the publishers of a loader."""

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        """A new image, and what led there from the last that this publisher has seen: the first
        time, from the empty one."""

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Somebody else leads, or nobody."""

    async def close(self) -> None:
        """The last call."""
