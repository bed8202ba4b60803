"""DescribeAcls (key 29), versions 1-3. KIP-140, KIP-290.

- The ACLs that a filter means, by resource pattern. MATCH means all that count for a resource of
  the name: literal, prefixed and `*`.
- Without an authorizer: SECURITY_DISABLED.
- A filter with a number for UNKNOWN in it is no request: the connection is closed.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.metadata.acl_filters import matching
from kraftline.metadata.image.acls import Acl
from kraftline.schema.api.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.server.connection import CloseConnection


def answer(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    if 0 in (
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ):
        raise CloseConnection("DescribeAcls with elements that are UNKNOWN")
    context.require(Operation.DESCRIBE)
    if not context.is_guarded:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    found: dict[tuple[int, str, int], set[Acl]] = {}
    for _, acl in matching(context.broker.cache.image.acls, request):
        pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
        found.setdefault(pattern, set()).add(acl)
    return DescribeAclsResponse(
        error_message=None,
        resources=tuple(
            DescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=tuple(
                    AclDescription(
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission_type,
                    )
                    for each in acls
                ),
            )
            for (kind, name, pattern), acls in sorted(found.items())
        ),
    )


def failed(
    request: DescribeAclsRequest, error: ErrorCode, context: Context
) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=None)
