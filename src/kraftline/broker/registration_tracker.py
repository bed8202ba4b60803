"""Lets the broker register again where its registration lacks what the cluster wants to know.

A publisher. One case, as in Kafka: the metadata version has come to know log directories, and the
registration of this broker, made before that, has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher

_logger = logging.getLogger(__name__)


class RegistrationTracker(MetadataPublisher):
    """`register_again` is set by whoever can."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self.register_again: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        return "RegistrationTracker"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        is_ours = delta.cluster is not None and self._broker_id in delta.cluster.brokers
        if not is_ours and delta.features is None:
            return
        broker = image.cluster.brokers.get(self._broker_id)
        version = image.features.metadata_version
        if broker is None or version is None or broker.directories:
            return
        if version.directory_assignment_supported and self.register_again is not None:
            _logger.info("the cluster knows log directories by now: registering again")
            self.register_again()

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        """Nothing is held."""
