"""Topics that are made because a client asks for their metadata.

- Only where `auto.create.topics.enable` says so; the client must allow it too, which the caller
  knows. Names that no topic can have are passed over. A coordinator's own topic is made without
  asking, when the first client looks for the coordinator.
- Several requests for one topic make one. Nobody waits: in the meantime the answer is
  UNKNOWN_TOPIC_OR_PARTITION, and clients ask again.
- Internal topics get the settings that their coordinators want.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from kraftline.config.effective import Config
from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.metadata.topic_names import is_valid
from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftline.schema.api.error_codes import ErrorCode

_logger = logging.getLogger(__name__)


class AutoTopics:
    """Makes topics for one broker."""

    def __init__(self, controller: Controller, config: Config) -> None:
        self._controller = controller
        self._config = config
        self._under_way: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_enabled(self) -> bool:
        return self._config["auto.create.topics.enable"] is True

    def create(self, names: Iterable[str]) -> None:
        """Begin to make those that can be made and are not being made already."""
        if self.is_enabled:
            self._begin(names)

    def create_internal(self, name: str) -> None:
        """Begin to make a coordinator's topic, whatever is said of topics that clients name."""
        self._begin((name,))

    def _begin(self, names: Iterable[str]) -> None:
        topics = [
            creatable(name, self._config)
            for name in dict.fromkeys(names)
            if is_valid(name) and name not in self._under_way
        ]
        if topics:
            self._under_way.update(topic.name for topic in topics)
            task = asyncio.create_task(self._create(topics), name="auto-topics")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _create(self, topics: list[CreatableTopic]) -> None:
        request = CreateTopicsRequest(
            topics=tuple(topics), timeout_ms=self._config.whole("request.timeout.ms")
        )
        try:
            response = await self._controller.create_topics(request)
        except KraftlineError as problem:
            _logger.warning("topics were not created: %s", problem)
            return
        finally:
            self._under_way.difference_update(topic.name for topic in topics)
        for each in response.topics:
            if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                _logger.info("%s was not created: %s", each.name, each.error_message)


def creatable(name: str, config: Config) -> CreatableTopic:
    """What is asked of the controller to make a topic that nobody described."""
    match name:
        case "__consumer_offsets":
            return _internal(
                name,
                config.whole("offsets.topic.num.partitions"),
                config.whole("offsets.topic.replication.factor"),
                {
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": config.whole("offsets.topic.segment.bytes"),
                },
            )
        case "__transaction_state":
            return _internal(
                name,
                config.whole("transaction.state.log.num.partitions"),
                config.whole("transaction.state.log.replication.factor"),
                {
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": config.whole("transaction.state.log.min.isr"),
                    "segment.bytes": config.whole("transaction.state.log.segment.bytes"),
                    "unclean.leader.election.enable": "false",
                },
            )
        case "__share_group_state":
            return _internal(
                name,
                config.whole("share.coordinator.state.topic.num.partitions"),
                config.whole("share.coordinator.state.topic.replication.factor"),
                {
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "min.insync.replicas": config.whole("share.coordinator.state.topic.min.isr"),
                    "retention.ms": -1,
                    "segment.bytes": config.whole("share.coordinator.state.topic.segment.bytes"),
                },
            )
        case _:
            return CreatableTopic(
                name=name,
                num_partitions=config.whole("num.partitions"),
                replication_factor=config.whole("default.replication.factor"),
            )


def _internal(
    name: str, partitions: int, replication_factor: int, configs: dict[str, object]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=tuple(
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ),
    )
