"""DeleteAcls (key 31), versions 1-3. KIP-140, KIP-290.

- The controller removes what each filter means, and says what that was.
- Without an authorizer: SECURITY_DISABLED.
- A filter with a number for UNKNOWN in it is no request: the connection is closed.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.server.connection import CloseConnection


async def answer(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    if any(
        0
        in (
            each.resource_type_filter,
            each.pattern_type_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    ):
        raise CloseConnection("DeleteAcls with elements that are UNKNOWN")
    context.require(Operation.ALTER)
    if not context.is_guarded:
        return _all(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return await context.broker.controller.delete_acls(request)


def failed(request: DeleteAclsRequest, error: ErrorCode, context: Context) -> DeleteAclsResponse:
    return _all(request, error, None)


def _all(request: DeleteAclsRequest, error: ErrorCode, message: str | None) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=error, error_message=message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))
