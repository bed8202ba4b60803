"""AlterPartitionReassignments (key 45), versions 0-1. KIP-455, KIP-860.

- Each partition stands for itself: new replicas, or null to take a reassignment back.
- On a node that is alone in its cluster only itself can be a replica.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def answer(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.admin.alter_partition_reassignments(request)
