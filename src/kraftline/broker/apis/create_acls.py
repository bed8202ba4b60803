"""CreateAcls (key 30), versions 1-3. KIP-140, KIP-290.

- The controller decides, ACL by ACL; one that is there already is no error.
- Without an authorizer: SECURITY_DISABLED.
- One that would be for any resource, operation or permission is no ACL: UNKNOWN_SERVER_ERROR, as
  Kafka has it, for all of the request.
- An ACL with a number for UNKNOWN in it is no request: the connection is closed.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation, Pattern, Permission, Resource
from kraftline.schema.api.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.server.connection import CloseConnection


async def answer(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    if any(
        0 in (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
        for each in request.creations
    ):
        raise CloseConnection("CreateAcls with elements that are UNKNOWN")
    context.require(Operation.ALTER)
    if not context.is_guarded:
        return _all(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    if any(map(_is_filter, request.creations)):
        return _all(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return await context.broker.controller.create_acls(request)


def _is_filter(wanted: AclCreation) -> bool:
    """ANY and MATCH are for those who look for ACLs."""
    return (
        wanted.resource_type == Resource.ANY
        or wanted.resource_pattern_type in (Pattern.ANY, Pattern.MATCH)
        or wanted.operation == Operation.ANY
        or wanted.permission_type == Permission.ANY
    )


def failed(request: CreateAclsRequest, error: ErrorCode, context: Context) -> CreateAclsResponse:
    return _all(request, error, None)


def _all(request: CreateAclsRequest, error: ErrorCode, message: str | None) -> CreateAclsResponse:
    result = AclCreationResult(error_code=error, error_message=message)
    return CreateAclsResponse(results=(result,) * len(request.creations))
