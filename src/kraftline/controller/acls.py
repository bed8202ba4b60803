"""ACLs are made and removed (CreateAcls, DeleteAcls).

- Each ACL of a request stands for itself. One that is there already is not made again, and that is
  no error.
- What a filter means is removed together; filters may mean the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from kraftline.controller.decision import Decision
from kraftline.controller.refusal import Refusal
from kraftline.controller.topics import MOST_RECORDS
from kraftline.metadata.access import CLUSTER_NAME, Operation, Pattern, Permission, Resource
from kraftline.metadata.acl_filters import matching
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraftline.schema.api.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraftline.schema.uuids import Uuid

E = TypeVar("E", bound=IntEnum)


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, new_id: Callable[[], Uuid] = random_uuid
) -> Decision[CreateAclsResponse]:
    known = frozenset(image.acls.acls.values())
    made: dict[Acl, AccessControlEntryRecord] = {}
    results = []
    for each in request.creations:
        try:
            acl = _checked(each)
        except Refusal as refusal:
            results.append(
                AclCreationResult(error_code=refusal.code, error_message=refusal.message)
            )
            continue
        if acl not in made and acl not in known:
            made[acl] = AccessControlEntryRecord(
                id=new_id(),
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        results.append(AclCreationResult(error_message=None))
    if len(made) > MOST_RECORDS:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation"
        )
    return Decision(
        CreateAclsResponse(results=tuple(results)), [(each, 0) for each in made.values()]
    )


def delete_acls(image: MetadataImage, request: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    gone: dict[Uuid, Versioned] = {}
    results = []
    for each in request.filters:
        try:
            _check_filter(each)
            found = list(matching(image.acls, each))
            if len(gone) + len(found) > MOST_RECORDS:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        except Refusal as refusal:
            results.append(
                DeleteAclsFilterResult(error_code=refusal.code, error_message=refusal.message)
            )
            continue
        gone |= {key: (RemoveAccessControlEntryRecord(id=key), 0) for key, _ in found}
        results.append(
            DeleteAclsFilterResult(
                error_message=None, matching_acls=tuple(_told(acl) for _, acl in found)
            )
        )
    return Decision(DeleteAclsResponse(filter_results=tuple(results)), list(gone.values()))


def _told(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _checked(wanted: AclCreation) -> Acl:
    resource = _named(Resource, wanted.resource_type)
    pattern = _named(Pattern, wanted.resource_pattern_type)
    operation = _named(Operation, wanted.operation)
    permission = _named(Permission, wanted.permission_type)
    if resource is Resource.CLUSTER and wanted.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not wanted.resource_name:
        raise _invalid("Invalid empty resource name")
    if resource in (Resource.UNKNOWN, Resource.ANY):
        raise _invalid(f"Invalid resourceType {resource.name}")
    if pattern not in (Pattern.LITERAL, Pattern.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern.name}")
    if operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {operation.name}")
    if permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {permission.name}")
    return Acl(
        resource,
        wanted.resource_name,
        pattern,
        wanted.principal,
        wanted.host,
        operation,
        permission,
    )


def _check_filter(wanted: DeleteAclsFilter) -> None:
    if not (
        _named(Resource, wanted.resource_type_filter)
        and _named(Pattern, wanted.pattern_type_filter)
    ):
        raise _invalid("Unknown patternFilter.")
    if not (_named(Operation, wanted.operation) and _named(Permission, wanted.permission_type)):
        raise _invalid("Unknown entryFilter.")


def _named(kind: type[E], code: int) -> E:
    """What a number means; all that are not known are UNKNOWN, which is 0."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
