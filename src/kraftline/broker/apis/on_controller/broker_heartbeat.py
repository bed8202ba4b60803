"""BrokerHeartbeat (key 63), versions 0-2.

A broker says that it is there and what it wants; it is told whether it is fenced and may go.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


async def answer(request: BrokerHeartbeatRequest, context: Context) -> BrokerHeartbeatResponse:
    context.require(Operation.CLUSTER_ACTION)
    return await context.broker.controller.heartbeat(request)
