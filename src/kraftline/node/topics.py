"""Topics as a program makes them for itself, without a client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraftline.errors import KraftlineError
from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftline.schema.api.error_codes import ErrorCode

if TYPE_CHECKING:
    from kraftline.broker.broker import Broker

_POLL: Final = 0.0005  # the broker knows a topic within a few turns of the loop


class TopicRefused(KraftlineError):
    """The controller made no such topic; the message is Kafka's."""


async def create_topic(
    broker: Broker, name: str, partitions: int, configs: Mapping[str, object]
) -> None:
    """Return once every partition has a leader here that answers."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ),
    )
    response = await broker.controller.create_topics(CreateTopicsRequest(topics=(topic,)))
    (created,) = response.topics
    if created.error_code != ErrorCode.NONE:
        code = ErrorCode(created.error_code).name
        raise TopicRefused(f"{name!r} was not created: {created.error_message or code}")
    while not _is_led(broker, name, partitions):
        await asyncio.sleep(_POLL)


def _is_led(broker: Broker, name: str, partitions: int) -> bool:
    found = (broker.partitions.get(name, each) for each in range(partitions))
    return all(each is not None and each.is_leader for each in found)
