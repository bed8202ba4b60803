"""Snapshots as the loader takes them: records that together replace all that was before."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns
from typing import Protocol

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import MetadataDelta, Provenance
from kraftline.metadata.loader.batches import Unreadable, decode_batches
from kraftline.metadata.loader.fault_handling import FaultHandler, MetadataFault
from kraftline.metadata.loader.manifests import SnapshotManifest
from kraftline.records.batch import Batch
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.storage.names import SnapshotId


class Snapshot(Protocol):
    """What `storage.snapshot_file.SnapshotReader` offers."""

    id: SnapshotId | None
    header: SnapshotHeaderRecord
    kraft_version: int
    voters: VotersRecord | None

    def batches(self) -> Iterator[Batch]: ...


def id_of(snapshot: Snapshot) -> SnapshotId:
    """Where the snapshot ends; bootstrap.checkpoint ends before the first offset."""
    return SnapshotId(0, 0) if snapshot.id is None else snapshot.id


def name_of(provenance: Provenance) -> str:
    """As Kafka calls the snapshot of an image."""
    id = snapshot_id(provenance)
    return f"snapshot {id.end_offset:020}-{id.epoch:010}"


def snapshot_id(provenance: Provenance) -> SnapshotId:
    """The id of a snapshot of an image with this provenance."""
    return SnapshotId(provenance.last_offset + 1, provenance.last_epoch)


def load_snapshot(
    delta: MetadataDelta, snapshot: Snapshot, faults: FaultHandler
) -> Iterator[SnapshotManifest | None]:
    """Replay a snapshot into a delta over the image before it: what it does not name is removed.

    None after each batch, so that others may have their turn, and the manifest at the end.
    """
    started = perf_counter_ns()
    id = id_of(snapshot)
    last = id.end_offset - 1
    index = 0
    for batch in decode_batches(snapshot.batches()):
        for record in batch.records:
            try:
                if isinstance(record, Unreadable):
                    raise record.error
                delta.replay(record)
            except Exception as error:
                if isinstance(error, ReplayError):
                    error.at(offset=last)
                faults.handle(
                    MetadataFault(
                        f"Error loading metadata log record {index} in snapshot at offset {last}",
                        error,
                        offset=last,
                        record=record,
                    )
                )
            index += 1
        yield None
    delta.finish_snapshot()
    time = snapshot.header.last_contained_log_timestamp
    provenance = Provenance(last, id.epoch, time, True)
    yield SnapshotManifest(provenance, perf_counter_ns() - started)
