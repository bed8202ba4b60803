"""From committed batches to images, and to those who act on them."""

from __future__ import annotations

from kraftline.metadata.loader.batches import (
    BatchDecoder,
    MetadataBatch,
    Unreadable,
    decode_batches,
    read_log,
)
from kraftline.metadata.loader.fault_handling import (
    CollectedFaults,
    FatalFault,
    FaultHandler,
    MetadataFault,
    RoleFaultHandler,
)
from kraftline.metadata.loader.loader import LoaderClosed, MetadataLoader
from kraftline.metadata.loader.manifests import (
    UNKNOWN_LEADER,
    LeaderAndEpoch,
    LogDeltaManifest,
    Manifest,
    SnapshotManifest,
)
from kraftline.metadata.loader.metrics import LoaderMetrics, finalized_levels
from kraftline.metadata.loader.publisher import MetadataPublisher
from kraftline.metadata.loader.publishers import PublisherRefused
from kraftline.metadata.loader.replay import Publication, Replay, image_of, replay
from kraftline.metadata.loader.snapshot_emitter import (
    SnapshotDirectory,
    SnapshotEmitter,
    SnapshotSink,
    snapshot_groups,
)
from kraftline.metadata.loader.snapshot_generator import SnapshotGenerator, SnapshotsDisabled
from kraftline.metadata.loader.snapshot_source import Snapshot, snapshot_id

__all__ = [
    "UNKNOWN_LEADER",
    "BatchDecoder",
    "CollectedFaults",
    "FatalFault",
    "FaultHandler",
    "LeaderAndEpoch",
    "LoaderClosed",
    "LoaderMetrics",
    "LogDeltaManifest",
    "Manifest",
    "MetadataBatch",
    "MetadataFault",
    "MetadataLoader",
    "MetadataPublisher",
    "Publication",
    "PublisherRefused",
    "Replay",
    "RoleFaultHandler",
    "Snapshot",
    "SnapshotDirectory",
    "SnapshotEmitter",
    "SnapshotGenerator",
    "SnapshotManifest",
    "SnapshotSink",
    "SnapshotsDisabled",
    "Unreadable",
    "decode_batches",
    "finalized_levels",
    "image_of",
    "read_log",
    "replay",
    "snapshot_groups",
    "snapshot_id",
]
