"""ElectLeaders (key 43), versions 0-2. KIP-183, KIP-460.

- PREFERRED gives partitions back to their first replicas, UNCLEAN gives a leader to those that have
  none; null stands for all partitions.
- Leaders change when the answer goes out, in the metadata: brokers learn of it from there.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.admin.elect_leaders(request)


def failed(
    request: ElectLeadersRequest, error: ErrorCode, context: Context
) -> ElectLeadersResponse:
    """Before version 1 an answer tells errors of partitions alone."""
    return ElectLeadersResponse(
        error_code=error if context.version > 0 else ErrorCode.NONE,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=number, error_code=error, error_message=None)
                    for number in each.partitions
                ),
            )
            for each in request.topic_partitions or ()
        ),
    )
