"""Access control entries by their id."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from immutables import Map

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied, drop_unnamed
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraftline.schema.uuids import Uuid


class Acl(msgspec.Struct, frozen=True, gc=False):
    """One entry. The numbers are those of Kafka's protocol, kept also where they are not known."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclsImage(msgspec.Struct, frozen=True, gc=False):
    acls: Map[Uuid, Acl] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.acls

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        for key, acl in sorted(self.acls.items()):
            record = AccessControlEntryRecord(
                id=key,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            yield record, 0


class AclsDelta:
    """`changes` in the order of the log; None is an entry that goes."""

    __slots__ = ("changes", "image")

    def __init__(self, image: AclsImage) -> None:
        self.image = image
        self.changes: dict[Uuid, Acl | None] = {}

    def replay_add(self, record: AccessControlEntryRecord) -> None:
        self.changes[record.id] = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def replay_remove(self, record: RemoveAccessControlEntryRecord) -> None:
        if record.id in self.image.acls:
            self.changes[record.id] = None
        elif self.changes.pop(record.id, None) is None:
            raise ReplayError(
                f"Failed to find existing ACL with ID {record.id} in either image or changes",
                record=record,
            )

    def finish_snapshot(self) -> None:
        drop_unnamed(self.image.acls, self.changes)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> AclsImage:
        acls = applied(self.image.acls, self.changes)
        return self.image if acls is self.image.acls else AclsImage(acls)
