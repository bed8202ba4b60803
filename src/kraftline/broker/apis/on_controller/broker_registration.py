"""BrokerRegistration (key 62), versions 0-4.

A broker, of this node or another, comes to the cluster; the rules are the controller's.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)


async def answer(
    request: BrokerRegistrationRequest, context: Context
) -> BrokerRegistrationResponse:
    context.require(Operation.CLUSTER_ACTION)
    return await context.broker.controller.register(request)
