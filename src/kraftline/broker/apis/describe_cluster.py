"""DescribeCluster (key 60), versions 0-2. KIP-700, KIP-919, KIP-1073.

- Brokers that are not fenced and have the listener that was asked through; from version 2 fenced
  ones too if the request wants them.
- Brokers' listeners answer for brokers: asking them for controllers (endpoint type 2) is
  MISMATCHED_ENDPOINT_TYPE, for anything else UNSUPPORTED_ENDPOINT_TYPE.
- The controller is any broker that is not fenced, or -1 if it is not among those told.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.cache import some_alive_broker
from kraftline.broker.context import Context
from kraftline.broker.operations import NOT_ASKED
from kraftline.schema.api.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraftline.schema.api.error_codes import ErrorCode

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def answer(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return _refused(request.endpoint_type)
    image = context.broker.cache.image
    brokers = []
    for _, broker in sorted(image.cluster.brokers.items()):
        at = broker.listener(context.listener)
        if at is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterBroker(
                broker_id=broker.id,
                host=at.host,
                port=at.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
        )
    controller = some_alive_broker(image)
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=controller if any(b.broker_id == controller for b in brokers) else -1,
        brokers=tuple(brokers),
        cluster_authorized_operations=(
            context.operations_of_cluster()
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an "
            "endpoint of type CONTROLLER",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"Unsupported endpoint type {endpoint_type}",
    )
