"""ListPartitionReassignments (key 46), version 0. KIP-455.

- Of the partitions that are named, or of all (null), those that move; others are left out.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def answer(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    context.require(Operation.DESCRIBE)
    return await context.broker.controller.admin.list_partition_reassignments(request)


def failed(
    request: ListPartitionReassignmentsRequest, error: ErrorCode, context: Context
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(partition_index=each)
                    for each in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )
