"""What administrators ask of the controller: each request is a decision on the newest state."""

from __future__ import annotations

from collections.abc import Container
from random import Random
from typing import TYPE_CHECKING

from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.controller.config_changes import (
    ConfigRules,
    alter_configs,
    incremental_alter_configs,
)
from kraftline.controller.partition_creation import create_partitions
from kraftline.metadata.image.configs import ConfigResource
from kraftline.schema.api.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kraftline.schema.api.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kraftline.controller.controller import Controller


class Admin:
    """Answers once what was decided is committed."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._run = controller.run
        self._random = Random()
        self.broker_configs = BrokerConfigs(controller.config, controller.node_id)

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, forbidden: Container[ConfigResource] = ()
    ) -> IncrementalAlterConfigsResponse:
        rules = self._config_rules(forbidden)
        return await self._run(lambda image, now: incremental_alter_configs(image, request, rules))

    async def alter_configs(
        self, request: AlterConfigsRequest, forbidden: Container[ConfigResource] = ()
    ) -> AlterConfigsResponse:
        rules = self._config_rules(forbidden)
        return await self._run(lambda image, now: alter_configs(image, request, rules))

    async def create_partitions(
        self, request: CreatePartitionsRequest, forbidden: Container[str] = ()
    ) -> CreatePartitionsResponse:
        return await self._run(
            lambda image, now: create_partitions(image, request, self._random, forbidden)
        )

    def _config_rules(self, forbidden: Container[ConfigResource]) -> ConfigRules:
        return ConfigRules(self._controller.configs, self.broker_configs, forbidden)
