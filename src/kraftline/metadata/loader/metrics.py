"""What the loader has done, as plain numbers that anything can export."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION, MetadataVersion
from kraftline.metadata.image import MetadataImage, Provenance

_BUCKETS = 40


class Distribution:
    """Numbers that were seen: how many, their sum, the largest, and how many of each power of
    two: `buckets[n]` counts those below 2**n that no earlier bucket has."""

    __slots__ = ("buckets", "count", "largest", "last", "total")

    def __init__(self) -> None:
        self.count = self.total = self.largest = self.last = 0
        self.buckets = [0] * _BUCKETS

    def add(self, value: int) -> None:
        self.count += 1
        self.total += value
        self.last = value
        if value > self.largest:
            self.largest = value
        self.buckets[min(value.bit_length(), _BUCKETS - 1)] += 1

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class LoaderMetrics:
    """`last_applied` is where the last image ends that all publishers have had.

    `load_faults` are those of records, batches and snapshots, `publish_faults` of publishers.
    """

    def __init__(self) -> None:
        self.last_applied = Provenance()
        self.metadata_version: MetadataVersion | None = None
        self.finalized_levels: dict[str, int] = {}
        self._levels: Mapping[str, int] | None = None
        self.kraft_version = 0
        self.controller_id = -1
        self.handled_snapshots = 0
        self.publications = 0
        self.load_faults = 0
        self.publish_faults = 0
        self.batch_sizes = Distribution()
        self.batch_processing_ns = Distribution()
        self.publication_ns = Distribution()

    @property
    def last_applied_offset(self) -> int:
        return self.last_applied.last_offset

    def lag(self, high_watermark: int | None) -> int | None:
        """How many committed records the publishers have not had; None while nobody knows."""
        if high_watermark is None:
            return None
        return max(0, high_watermark - 1 - self.last_applied.last_offset)

    def lag_ms(self, now_ms: int | None = None) -> int:
        """How old the last applied record is."""
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return max(0, now - self.last_applied.last_log_time_ms)

    def applied(self, image: MetadataImage) -> None:
        """All publishers have had this image."""
        self.last_applied = image.provenance
        version = image.features.metadata_version
        if version is not self.metadata_version or image.features.levels is not self._levels:
            self.metadata_version = version
            said = KRAFT_VERSION in self.finalized_levels
            self.finalized_levels = finalized_levels(image, self.kraft_version)
            if said:
                self.set_kraft_version(self.kraft_version)
            self._levels = image.features.levels

    def set_kraft_version(self, level: int) -> None:
        """kraft.version is said by control records, and counts as finalized from there on, also
        if it is 0."""
        self.kraft_version = level
        self.finalized_levels[KRAFT_VERSION] = level


def finalized_levels(image: MetadataImage, kraft_version: int) -> dict[str, int]:
    """Every finalized feature of the cluster, kraft.version too where it is above 0."""
    levels = dict(image.features.levels)
    if image.features.metadata_version is not None:
        levels[METADATA_VERSION] = image.features.metadata_version.level
    if kraft_version:
        levels[KRAFT_VERSION] = kraft_version
    return levels
