"""ACLs of both nodes, made and waited for."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kraftline.schema.api.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kraftline.schema.api.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraftline.schema.api.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraftline.schema.api.error_codes import ErrorCode
from tests.broker.talking import Talk
from tests.security.secured import Secured

_ANY = 1


def acl(
    resource: int,
    name: str,
    operation: int,
    *,
    principal: str = "User:alice",
    pattern: int = 3,
    permission: int = 3,
    host: str = "*",
) -> AclCreation:
    return AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def set_acls(node: Secured, acls: Iterable[AclCreation]) -> None:
    """These and no others; return once they count."""
    wanted = tuple(acls)
    everything = DeleteAclsFilter(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    with Talk(node.plain) as admin:
        gone = admin.ask_for(DeleteAclsResponse, DeleteAclsRequest(filters=(everything,)), 3)
        assert gone.filter_results[0].error_code == ErrorCode.NONE, gone
        made = admin.ask_for(CreateAclsResponse, CreateAclsRequest(creations=wanted), 3)
        assert all(each.error_code == ErrorCode.NONE for each in made.results), made
        described = DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        deadline = time.monotonic() + 60
        while True:
            said = admin.ask_for(DescribeAclsResponse, described, 3)
            found = {
                acl(
                    resource.resource_type,
                    resource.resource_name,
                    each.operation,
                    principal=each.principal,
                    pattern=resource.pattern_type,
                    permission=each.permission_type,
                    host=each.host,
                )
                for resource in said.resources
                for each in resource.acls
            }
            if found == set(wanted):
                return
            assert time.monotonic() < deadline, said
