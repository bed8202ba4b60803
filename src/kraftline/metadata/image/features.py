"""The finalized features: metadata.version, and the level of every other that is on."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from immutables import Map

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    MINIMUM,
    MetadataVersion,
    UnsupportedFeature,
    from_level,
)
from kraftline.metadata.image.keyed import applied, drop_unnamed
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord


class FeaturesImage(msgspec.Struct, frozen=True, gc=False):
    """`levels` has neither metadata.version nor kraft.version, which lives in control records."""

    metadata_version: MetadataVersion | None = None
    levels: Map[str, int] = Map()

    @property
    def is_empty(self) -> bool:
        return self.metadata_version is None and not self.levels

    @property
    def elr_enabled(self) -> bool:
        return self.levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        # Before all others, and in version 0: it may decide how those behind it are read.
        level = options.version.level
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0
        for name, level in sorted(self.levels.items()):
            yield FeatureLevelRecord(name=name, feature_level=level), 0


class FeaturesDelta:
    """`changes` has the new level of each feature, None for one that is off."""

    __slots__ = ("changes", "image", "metadata_version")

    def __init__(self, image: FeaturesImage) -> None:
        self.image = image
        self.changes: dict[str, int | None] = {}
        # Set by any record of it, be it the same level again.
        self.metadata_version: MetadataVersion | None = None

    def replay(self, record: FeatureLevelRecord) -> None:
        if record.name == METADATA_VERSION:
            try:
                self.metadata_version = from_level(record.feature_level)
            except UnsupportedFeature as error:
                raise ReplayError(
                    "Unsupported metadata version - if you are currently upgrading your cluster, "
                    f"please ensure the metadata version is set to {MINIMUM} (or higher) before "
                    f"updating the software version. {error}",
                    record=record,
                ) from error
        elif record.name != KRAFT_VERSION:
            self.changes[record.name] = record.feature_level or None

    def finish_snapshot(self) -> None:
        # metadata.version stays as it was when a snapshot has none.
        drop_unnamed(self.image.levels, self.changes)

    def apply(self) -> FeaturesImage:
        image = self.image
        levels = applied(image.levels, self.changes)
        version = self.metadata_version or image.metadata_version
        if levels is image.levels and version is image.metadata_version:
            return image
        return FeaturesImage(version, levels)
