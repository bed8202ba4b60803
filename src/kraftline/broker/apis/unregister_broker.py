"""UnregisterBroker (key 64), version 0. KIP-500.

- The broker leads nothing and is in sync nowhere from now on; one that runs is fenced by it, until
  it is started again.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def answer(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.admin.unregister_broker(request)
