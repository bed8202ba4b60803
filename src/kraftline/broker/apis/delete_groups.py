"""DeleteGroups (key 42), versions 0-2. KIP-229.

- A group without members goes, with its offsets; those of open transactions too.
- With members: NON_EMPTY_GROUP; not there: GROUP_ID_NOT_FOUND. A group that is named twice is
  deleted once.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kraftline.broker.context import Context
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(
    request: DeleteGroupsRequest, context: Context
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    named = tuple(dict.fromkeys(request.groups_names))
    results: list[DeletableGroupResult] = []
    refused = []
    waiting = []
    for group_id in named:
        if not context.may(Operation.DELETE, Resource.GROUP, group_id):
            refused.append(_result(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        try:
            settled = _delete(group_id, context)
        except Refusal as refusal:
            results.append(_result(group_id, refusal.code))
            continue
        if settled is not None:
            waiting.append((len(results), settled))
        results.append(_result(group_id, ErrorCode.NONE))
    if waiting:
        return _later(results, refused, waiting)
    return DeleteGroupsResponse(results=(*results, *refused))


def failed(
    request: DeleteGroupsRequest, error: ErrorCode, context: Context
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(_result(each, error) for each in dict.fromkeys(request.groups_names))
    )


async def _later(
    results: list[DeletableGroupResult],
    refused: list[DeletableGroupResult],
    waiting: list[tuple[int, Awaitable[None]]],
) -> DeleteGroupsResponse:
    for at, settled in waiting:
        try:
            await settled
        except Refusal as refusal:
            results[at] = _result(results[at].group_id, refusal.code)
    return DeleteGroupsResponse(results=(*results, *refused))


def _delete(group_id: str, context: Context) -> Awaitable[None] | None:
    state = context.broker.groups.shards.of(group_id)
    group = state.groups.get(group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.check_delete()
    return state.shard.write(state.delete(group))


def _result(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error)
