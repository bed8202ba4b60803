"""AllocateProducerIds (key 67), versions 0.

A block of ids for a broker's producers; a broker epoch that is not current is refused.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def answer(
    request: AllocateProducerIdsRequest, context: Context
) -> AllocateProducerIdsResponse:
    context.require(Operation.CLUSTER_ACTION)
    return await context.broker.controller.allocate_producer_ids(request)
