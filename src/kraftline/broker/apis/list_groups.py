"""ListGroups (key 16), versions 0-5. KIP-518, KIP-848.

- Those groups whose coordinator this broker is, of all kinds; from version 4 on of some states
  alone, from 5 on of some types, whatever case these are written in. A state or a type that nobody
  knows matches nothing.
- While one of its partitions is being loaded: COORDINATOR_LOAD_IN_PROGRESS.
- Who may describe the cluster is told of all, everybody else of those it may describe.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def answer(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    shards = context.broker.groups.shards
    if shards.loading:
        raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)
    states = {each.lower().strip() for each in request.states_filter}
    kinds = {each.lower() for each in request.types_filter}
    sees_all = context.may(Operation.DESCRIBE, Resource.CLUSTER)
    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind.value,
            )
            for state in shards
            for group in state.groups.values()
            if (not states or group.state.lower() in states)
            and (not kinds or group.kind.value in kinds)
            and (sees_all or context.may(Operation.DESCRIBE, Resource.GROUP, group.group_id))
        )
    )
