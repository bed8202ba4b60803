"""CreatePartitions (key 37), versions 0-3. KIP-195, KIP-599.

- The controller decides, topic by topic; new partitions are committed when the answer goes out.
- `timeout_ms` never cuts an answer short: nothing is waited for.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)


async def answer(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    forbidden = frozenset(
        topic.name
        for topic in request.topics
        if not context.may(Operation.ALTER, Resource.TOPIC, topic.name)
    )
    return await context.broker.controller.admin.create_partitions(request, forbidden)
