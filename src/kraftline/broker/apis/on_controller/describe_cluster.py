"""DescribeCluster (key 60), versions 0-2, of a controller. KIP-919.

- Controllers that registered and have the listener that was asked through; the controller is the
  one that is active.
- Unlike with brokers, only who may alter the cluster is told.
- Asking it for brokers (endpoint type 1) is MISMATCHED_ENDPOINT_TYPE, and INVALID_REQUEST in
  version 0, which knows nothing else; for any other type it is UNSUPPORTED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.operations import NOT_ASKED
from kraftline.metadata.access import Operation
from kraftline.schema.api.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraftline.schema.api.error_codes import ErrorCode

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_KNOWS_TYPES: Final = 1


def answer(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    context.require(Operation.ALTER)
    if request.endpoint_type == _BROKERS:
        return DescribeClusterResponse(
            error_code=(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if context.version >= _KNOWS_TYPES
                else ErrorCode.INVALID_REQUEST
            ),
            error_message="The request was sent to an endpoint of type CONTROLLER, but we wanted "
            "an endpoint of type BROKER",
        )
    if request.endpoint_type != _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    controllers = context.broker.cache.image.cluster.controllers
    told = [
        DescribeClusterBroker(broker_id=each.id, host=at.host, port=at.port)
        for _, each in sorted(controllers.items())
        if (at := each.listener(context.listener)) is not None
    ]
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.controller.node_id,
        brokers=tuple(told),
        cluster_authorized_operations=(
            context.operations_of_cluster()
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
