"""ControllerRegistration (key 70), versions 0.

A controller tells where it is and what it supports.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


async def answer(
    request: ControllerRegistrationRequest, context: Context
) -> ControllerRegistrationResponse:
    context.require(Operation.CLUSTER_ACTION)
    return await context.broker.controller.register_controller(request)
