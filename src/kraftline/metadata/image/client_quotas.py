"""Quotas by entity: a user, a client id, both together, or an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
from immutables import Map

from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied_inside, drop_unnamed_inside
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.client_quota_record import ClientQuotaRecord, EntityData

# (type, name) pairs in the order of their types; a name of None is the default entity.
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]


class ClientQuotasImage(msgspec.Struct, frozen=True, gc=False):
    """An entity with no quota set is not in it."""

    entities: Map[QuotaEntity, Mapping[str, float]] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.entities

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        for entity, quotas in sorted(self.entities.items(), key=_written_order):
            named = tuple([EntityData(entity_type=kind, entity_name=name) for kind, name in entity])
            for key, value in sorted(quotas.items()):
                yield ClientQuotaRecord(entity=named, key=key, value=value, remove=False), 0


class ClientQuotasDelta:
    """`changes` has the quotas of each entity that changed; None is one that goes."""

    __slots__ = ("changes", "image")

    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changes: dict[QuotaEntity, dict[str, float | None]] = {}

    def replay(self, record: ClientQuotaRecord) -> None:
        # A type named twice counts as its last name says.
        named = {each.entity_type: each.entity_name for each in record.entity}
        quotas = self.changes.setdefault(tuple(sorted(named.items(), key=_type)), {})
        quotas[record.key] = None if record.remove else record.value

    def finish_snapshot(self) -> None:
        drop_unnamed_inside(self.image.entities, self.changes)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> ClientQuotasImage:
        entities = applied_inside(self.image.entities, self.changes)
        return self.image if entities is self.image.entities else ClientQuotasImage(entities)


def _type(item: tuple[str, str | None]) -> str:
    return item[0]


def _written_order(item: tuple[QuotaEntity, Mapping[str, float]]) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in item[0]]
