"""Which ACLs a filter means: DescribeAcls and DeleteAcls say it in the same fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kraftline.metadata.access import WILDCARD, Operation, Pattern, Permission, Resource
from kraftline.metadata.image.acls import Acl, AclsImage
from kraftline.schema.uuids import Uuid


class AclFilter(Protocol):
    """None, or ANY among numbers, is whatever there is."""

    @property
    def resource_type_filter(self) -> int: ...
    @property
    def resource_name_filter(self) -> str | None: ...
    @property
    def pattern_type_filter(self) -> int: ...
    @property
    def principal_filter(self) -> str | None: ...
    @property
    def host_filter(self) -> str | None: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


def matching(acls: AclsImage, wanted: AclFilter) -> Iterator[tuple[Uuid, Acl]]:
    for key, acl in acls.acls.items():
        if matches(acl, wanted):
            yield key, acl


def matches(acl: Acl, wanted: AclFilter) -> bool:
    return (
        wanted.resource_type_filter in (Resource.ANY, acl.resource_type)
        and wanted.operation in (Operation.ANY, acl.operation)
        and wanted.permission_type in (Permission.ANY, acl.permission_type)
        and wanted.principal_filter in (None, acl.principal)
        and wanted.host_filter in (None, acl.host)
        and _matches_pattern(acl, wanted.pattern_type_filter, wanted.resource_name_filter)
    )


def _matches_pattern(acl: Acl, pattern: int, name: str | None) -> bool:
    if pattern not in (Pattern.ANY, Pattern.MATCH, acl.pattern_type):
        return False
    if name is None:
        return True
    if pattern != Pattern.MATCH:
        return name == acl.resource_name
    if acl.pattern_type == Pattern.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)
