"""Dynamic configurations by resource, without defaults and without what files say.

A removed topic's configs go with it. Kafka's own delta forgets those that were set inside the
same delta, so that what it ends with depends on how commits were grouped; here they always go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from immutables import Map

from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied_inside, drop_unnamed_inside
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.config_record import ConfigRecord

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

# Whether a key of a resource type is known to this software; others are passed over.
ConfigFilter: TypeAlias = Callable[[int, str], bool]


class ConfigResource(NamedTuple):
    """Type 2 is a topic, 4 a broker ("" for the default of all), 8 a broker's loggers, 16 client
    metrics, 32 a group."""

    type: int
    name: str


class ConfigsImage(msgspec.Struct, frozen=True, gc=False):
    """A resource with no key set is not in it."""

    resources: Map[ConfigResource, Mapping[str, str]] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.resources

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """The keys of one resource, read only."""
        return self.resources.get(ConfigResource(kind, name), {})

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        for (kind, resource), keys in sorted(self.resources.items(), key=lambda item: item[0]):
            for name, value in sorted(keys.items()):
                record = ConfigRecord(
                    resource_type=kind, resource_name=resource, name=name, value=value
                )
                yield record, 0


class ConfigsDelta:
    """`changes` has the keys of each resource that changed; None is a key that goes."""

    __slots__ = ("_known", "changes", "image")

    def __init__(self, image: ConfigsImage, known: ConfigFilter | None = None) -> None:
        self.image = image
        self.changes: dict[ConfigResource, dict[str, str | None]] = {}
        self._known = known

    def replay(self, record: ConfigRecord) -> None:
        if self._known is not None and not self._known(record.resource_type, record.name):
            return
        resource = ConfigResource(record.resource_type, record.resource_name)
        keys = self.changes.get(resource)
        if keys is None:
            keys = self.changes[resource] = {}
        keys[record.name] = record.value

    def remove_topic(self, name: str) -> None:
        resource = ConfigResource(TOPIC, name)
        before = self.image.resources.get(resource)
        if before is not None:
            self.changes[resource] = dict.fromkeys(before)
        else:
            self.changes.pop(resource, None)

    def finish_snapshot(self) -> None:
        drop_unnamed_inside(self.image.resources, self.changes)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> ConfigsImage:
        resources = applied_inside(self.image.resources, self.changes)
        return self.image if resources is self.image.resources else ConfigsImage(resources)
