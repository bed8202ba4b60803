"""Configs of this broker that change while it runs. A publisher: those who follow are told.

Logs are not among them: they have configs of topics over those of brokers, which the publisher of
partitions brings to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kraftline.config.effective import Config
from kraftline.config.values import BadConfig
from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import BROKER
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher

_logger = logging.getLogger(__name__)


class DynamicConfigs(MetadataPublisher):
    """`running` is the configuration as the newest metadata has it."""

    def __init__(self, configs: BrokerConfigs) -> None:
        self.running = configs.started
        self._configs = configs
        self._followers: list[Callable[[Config], None]] = []

    @property
    def name(self) -> str:
        return "DynamicConfigs"

    def follow(self, act: Callable[[Config], None]) -> None:
        """`act` now, and whenever something has changed."""
        self._followers.append(act)
        act(self.running)

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        concerned = {(BROKER, ""), (BROKER, str(self._configs.node_id))}
        if delta.configs is None or concerned.isdisjoint(delta.configs.changes):
            return
        try:
            running = self._configs.running(image)
            for act in self._followers:
                act(running)
        except BadConfig as problem:
            # It was refused when it was asked for, unless another release wrote it.
            _logger.error("the broker keeps its configs as they were: %s", problem)
            return
        self.running = running

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        """Nothing is held."""
