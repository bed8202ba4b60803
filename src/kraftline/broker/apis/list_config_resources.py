"""ListConfigResources (key 74), versions 0-1. KIP-714, KIP-1142.

- Version 0 tells the subscriptions to client metrics alone.
- From version 1 on resources of the wanted types, of all where none is named: topics, brokers and
  their loggers whether or not they have configs; groups and subscriptions only if they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_KINDS: Final = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def answer(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    context.require(Operation.DESCRIBE_CONFIGS)
    wanted: tuple[int, ...] = request.resource_types or _KINDS
    if context.version == 0:
        wanted = (CLIENT_METRICS,)
    if not set(wanted) <= set(_KINDS):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.broker.cache.image
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _KINDS
            if kind in wanted
            for name in _names(image, kind)
        )
    )


def _names(image: MetadataImage, kind: int) -> Iterator[str]:
    if kind == TOPIC:
        yield from sorted(image.topics.ids)
    elif kind in (BROKER, BROKER_LOGGER):
        yield from (str(each) for each in sorted(image.cluster.brokers))
    else:
        yield from sorted(each.name for each in image.configs.resources if each.type == kind)
