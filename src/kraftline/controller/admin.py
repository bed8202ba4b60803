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
from kraftline.controller.decision import Decision
from kraftline.controller.elections import elect_leaders
from kraftline.controller.feature_changes import FeatureRules, update_features
from kraftline.controller.partition_creation import create_partitions
from kraftline.controller.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kraftline.controller.topic_configs import MIN_ISR
from kraftline.controller.unregistration import unregister_broker
from kraftline.metadata.image.configs import ConfigResource
from kraftline.schema.api.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kraftline.schema.api.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kraftline.schema.api.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraftline.schema.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kraftline.schema.api.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kraftline.schema.api.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

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

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        configs = self._controller.configs
        return await self._run(lambda image, now: elect_leaders(image, request, configs))

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        configs = self._controller.configs
        return await self._run(
            lambda image, now: alter_partition_reassignments(image, request, configs)
        )

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return await self._run(
            lambda image, now: Decision(list_partition_reassignments(image, request))
        )

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
        controller = self._controller
        return await self._run(
            lambda image, now: unregister_broker(
                image, request, controller.configs, controller.sessions
            )
        )

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        config = self._controller.config
        rules = FeatureRules(
            node_id=self._controller.node_id,
            kraft_version=self._controller.log.kraft_version,
            min_isr=config.whole(MIN_ISR),
            unstable=config["unstable.feature.versions.enable"] is True,
        )
        return await self._run(lambda image, now: update_features(image, request, rules))

    def _config_rules(self, forbidden: Container[ConfigResource]) -> ConfigRules:
        return ConfigRules(self._controller.configs, self.broker_configs, forbidden)
