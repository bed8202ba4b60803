"""AssignReplicasToDirs (key 73), versions 0.

A broker tells in which directories its replicas are.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


async def answer(
    request: AssignReplicasToDirsRequest, context: Context
) -> AssignReplicasToDirsResponse:
    context.require(Operation.CLUSTER_ACTION)
    return await context.broker.controller.assign_replicas_to_dirs(request)
