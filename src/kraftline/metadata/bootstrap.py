"""The seed of a cluster: the records that go into an empty metadata log before all others.

`bootstrap.checkpoint` holds them: metadata.version first, then other features by name, then SCRAM
users. Where there is no such file the seed is what the release would start with, as in Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from kraftline.errors import Corrupt
from kraftline.metadata.features import (
    KRAFT_VERSION,
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MetadataVersion,
    from_level,
)
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.frame import decode_record, encode_record
from kraftline.schema.types import Message
from kraftline.storage.files import Path
from kraftline.storage.names import BOOTSTRAP
from kraftline.storage.snapshot_file import SnapshotReader, write_bootstrap


class BootstrapMetadata(msgspec.Struct, frozen=True):
    """`source` says in words where the records are from, for the log of a node."""

    records: tuple[Message, ...]
    source: str

    @property
    def metadata_version(self) -> MetadataVersion:
        return from_level(self.feature_level(METADATA_VERSION))

    def feature_level(self, name: str) -> int:
        """The level that the records set, 0 where they set none."""
        level = 0
        for record in self.records:
            if isinstance(record, FeatureLevelRecord) and record.name == name:
                level = record.feature_level
        return level


def bootstrap_of(
    version: MetadataVersion,
    features: Mapping[str, int],
    more: Sequence[Message] = (),
    *,
    source: str = "format command",
) -> BootstrapMetadata:
    """The seed for these levels. Level 0 is no record; kraft.version lives in control records."""
    others = {
        name: level
        for name, level in sorted(features.items())
        if level > 0 and name not in (METADATA_VERSION, KRAFT_VERSION)
    }
    levels = {METADATA_VERSION: version.level} | others
    records = [FeatureLevelRecord(name=name, feature_level=n) for name, n in levels.items()]
    return BootstrapMetadata((*records, *more), source)


def default_bootstrap() -> BootstrapMetadata:
    """What a node starts a cluster with when its directory has no bootstrap.checkpoint."""
    return bootstrap_of(LATEST_PRODUCTION, {}, source="the default bootstrap")


def read_bootstrap(directory: Path) -> BootstrapMetadata:
    """The seed that the metadata log directory holds, or the default."""
    path = os.path.join(os.fspath(directory), BOOTSTRAP)
    if not os.path.exists(path):
        return default_bootstrap()
    with SnapshotReader(path) as reader:
        records = tuple(decode_record(record.value or b"")[0] for record in reader.records())
    found = BootstrapMetadata(records, f"the binary bootstrap metadata file: {path}")
    if not found.feature_level(METADATA_VERSION):
        raise Corrupt(
            f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata",
            file=path,
            hint="without the file a node starts with the default of its release",
        )
    return found


def write_bootstrap_metadata(directory: Path, bootstrap: BootstrapMetadata) -> str:
    """Write bootstrap.checkpoint into a directory; its path."""
    # Every record that a seed may hold has version 0 in all metadata versions.
    return write_bootstrap(directory, [encode_record(each, 0) for each in bootstrap.records])
