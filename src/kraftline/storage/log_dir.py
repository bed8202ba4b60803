"""What is in a log directory: whose it is, its checkpoints, and the partitions in it.

Only the top is listed; a partition is looked into when asked for, so that a directory of ten
thousand partitions opens at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from kraftline.storage import checkpoints, clean_shutdown, lock, meta_properties
from kraftline.storage.checkpoints import PartitionOffset
from kraftline.storage.clean_shutdown import CleanShutdown
from kraftline.storage.files import Path, unreadable
from kraftline.storage.meta_properties import MetaProperties
from kraftline.storage.names import BOOTSTRAP, METADATA_TOPIC, PartitionName, parse_partition
from kraftline.storage.partition_dir import Oddity, read_small

_T = TypeVar("_T")
_KNOWN = frozenset(
    {
        meta_properties.NAME,
        clean_shutdown.NAME,
        lock.NAME,
        BOOTSTRAP,
        *checkpoints.OFFSET_CHECKPOINTS,
    }
)
# Kafka keeps fetched indexes of tiered storage there, among the partitions.
_KNOWN_DIRECTORIES = frozenset({"remote-log-index-cache"})
_ASIDE = frozenset(f"{name}.tmp" for name in _KNOWN)


class PartitionPlace(msgspec.Struct, frozen=True):
    """A partition's directory, not looked into yet."""

    name: PartitionName
    path: str


class LogDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """`clean_shutdown` is None where no marker is: the broker runs, or was killed.

    `bootstrap` is the path of bootstrap.checkpoint. Checkpoints that are not there are empty.
    """

    path: str
    meta: MetaProperties | None = None
    partitions: tuple[PartitionPlace, ...] = ()
    recovery_points: tuple[PartitionOffset, ...] = ()
    high_watermarks: tuple[PartitionOffset, ...] = ()
    log_start_offsets: tuple[PartitionOffset, ...] = ()
    cleaner_offsets: tuple[PartitionOffset, ...] = ()
    bootstrap: str | None = None
    clean_shutdown: CleanShutdown | None = None
    unknown: tuple[str, ...] = ()
    oddities: tuple[Oddity, ...] = ()

    def metadata_log(self) -> PartitionPlace | None:
        """The directory of the metadata log, where this is a metadata log directory."""
        for place in self.partitions:
            if place.name == PartitionName(METADATA_TOPIC, 0):
                return place
        return None


def read_log_directory(path: Path) -> LogDirectory:
    """List a log directory and read its small files. NotKafka if it cannot be listed at all."""
    folder = os.fspath(path)
    oddities: list[Oddity] = []
    partitions: list[PartitionPlace] = []
    unknown: list[str] = []
    files: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = parse_partition(entry.name)
                try:
                    directory = entry.is_dir()
                except OSError as error:
                    oddities.append(Oddity(entry.path, f"cannot be read: {error.strerror}"))
                    continue
                if directory and name is not None:
                    partitions.append(PartitionPlace(name, entry.path))
                elif directory and entry.name not in _KNOWN_DIRECTORIES:
                    unknown.append(entry.name)
                    oddities.append(
                        Oddity(entry.path, "not a partition's name: Kafka would refuse to start")
                    )
                elif entry.name in _KNOWN:
                    files.add(entry.name)
                elif entry.name not in _ASIDE and not directory:
                    unknown.append(entry.name)
    except OSError as error:
        raise unreadable(folder, error) from error

    def small(name: str, read: Callable[[str], _T]) -> _T | None:
        return read_small(folder, name, read, oddities) if name in files else None

    def offsets(name: str) -> tuple[PartitionOffset, ...]:
        return small(name, checkpoints.read_offset_checkpoint) or ()

    partitions.sort(key=lambda place: (place.name.topic, place.name.partition, place.path))
    return LogDirectory(
        path=folder,
        meta=small(meta_properties.NAME, meta_properties.read_meta_properties),
        partitions=tuple(partitions),
        recovery_points=offsets(checkpoints.RECOVERY_POINTS),
        high_watermarks=offsets(checkpoints.HIGH_WATERMARKS),
        log_start_offsets=offsets(checkpoints.LOG_START_OFFSETS),
        cleaner_offsets=offsets(checkpoints.CLEANER_OFFSETS),
        bootstrap=os.path.join(folder, BOOTSTRAP) if BOOTSTRAP in files else None,
        clean_shutdown=small(clean_shutdown.NAME, clean_shutdown.read_clean_shutdown),
        unknown=tuple(sorted(unknown)),
        oddities=tuple(oddities),
    )
