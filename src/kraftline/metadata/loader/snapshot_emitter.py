"""Writes an image as a snapshot: its records in batches of Kafka's size, through whoever keeps
the log."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.loader.snapshot_source import name_of, snapshot_id
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.metadata.frame import encode_record
from kraftline.storage.files import Path
from kraftline.storage.names import SnapshotId, format_snapshot
from kraftline.storage.snapshot_file import SnapshotWriter

_logger = logging.getLogger(__name__)
# Kafka's: batches are limited in bytes, but so few records never come near.
BATCH_RECORDS = 1024


class SnapshotSink(Protocol):
    """Where snapshots go: `raft.EmbeddedLog`, or a directory."""

    async def create_snapshot(
        self,
        id: SnapshotId,
        groups: Iterable[Sequence[bytes]],
        *,
        last_contained_log_timestamp: int,
    ) -> str | None:
        """Write records in groups, each of which stays in one batch; the path, or None where
        there is such a snapshot already. `groups` is iterated on another thread."""


class SnapshotEmitter:
    """`generated_bytes` and `generated_at_ms` are of the last snapshot that was written."""

    def __init__(
        self,
        sink: SnapshotSink,
        *,
        batch_records: int = BATCH_RECORDS,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._sink = sink
        self._batch_records = batch_records
        self._clock_ms = clock_ms
        self.generated_bytes = 0
        self.generated_at_ms = clock_ms()

    @property
    def age_ms(self) -> int:
        """How long ago that was; before the first, since when there could have been one."""
        return max(0, self._clock_ms() - self.generated_at_ms)

    async def maybe_emit(self, image: MetadataImage) -> str | None:
        """Write the image's snapshot, unless it is there; its path."""
        provenance = image.provenance
        path = await self._sink.create_snapshot(
            snapshot_id(provenance),
            snapshot_groups(image, self._batch_records),
            last_contained_log_timestamp=provenance.last_log_time_ms,
        )
        if path is None:
            _logger.error("Not generating %s because it already exists.", name_of(provenance))
            return None
        self.generated_bytes = os.path.getsize(path)
        self.generated_at_ms = self._clock_ms()
        _logger.info("Successfully wrote %s", name_of(provenance))
        return path


def snapshot_groups(
    image: MetadataImage, batch_records: int = BATCH_RECORDS
) -> Iterator[list[bytes]]:
    """The values of the image's snapshot records, for its own metadata version, as many together
    as Kafka puts into a batch. UnwritableMetadata, when iterated, if something would be lost."""
    values = (encode_record(*record) for record in image.write(image.write_options()))
    while group := list(islice(values, batch_records)):
        yield group


class SnapshotDirectory:
    """A sink for whoever has no log, only a directory. kraft.version and voters go into every
    snapshot."""

    def __init__(
        self, directory: Path, *, kraft_version: int = 0, voters: VotersRecord | None = None
    ) -> None:
        self._directory = os.fspath(directory)
        self._kraft_version = kraft_version
        self._voters = voters

    async def create_snapshot(
        self,
        id: SnapshotId,
        groups: Iterable[Sequence[bytes]],
        *,
        last_contained_log_timestamp: int,
    ) -> str | None:
        if os.path.exists(os.path.join(self._directory, format_snapshot(id))):
            return None
        return await asyncio.to_thread(self._write, id, groups, last_contained_log_timestamp)

    def _write(self, id: SnapshotId, groups: Iterable[Sequence[bytes]], timestamp: int) -> str:
        with SnapshotWriter(
            self._directory,
            id,
            last_contained_log_timestamp=timestamp,
            kraft_version=self._kraft_version,
            voters=self._voters,
        ) as writer:
            for group in groups:
                writer.append(group)
            writer.freeze()
        return writer.path
