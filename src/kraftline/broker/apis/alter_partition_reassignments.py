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
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.admin.alter_partition_reassignments(request)


def failed(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, context: Context
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=None
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
