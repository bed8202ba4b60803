"""From committed batches to images, and to those who act on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftline.metadata.loader.batches import (
    BatchDecoder,
    MetadataBatch,
    Unreadable,
    decode_batches,
    part_of,
    read_log,
)
from kraftline.metadata.loader.effects import Effect, Placed, effects
from kraftline.metadata.loader.fault_handling import (
    CollectedFaults,
    FatalFault,
    FaultHandler,
    MetadataFault,
    RoleFaultHandler,
    record_fault,
)
from kraftline.metadata.loader.manifests import (
    UNKNOWN_LEADER,
    LeaderAndEpoch,
    LogDeltaManifest,
    Manifest,
    SnapshotManifest,
)
from kraftline.metadata.loader.replay import (
    Publication,
    Replay,
    image_of,
    images_at,
    replay,
    without_collector,
)
from kraftline.metadata.loader.snapshot_source import Snapshot, snapshot_id
from kraftline.metadata.loader.transactions import Transaction

if TYPE_CHECKING:
    from kraftline.metadata.loader.loader import LoaderClosed, MetadataLoader
    from kraftline.metadata.loader.metrics import LoaderMetrics, finalized_levels
    from kraftline.metadata.loader.publisher import MetadataPublisher
    from kraftline.metadata.loader.publishers import PublisherRefused
    from kraftline.metadata.loader.snapshot_emitter import (
        SnapshotDirectory,
        SnapshotEmitter,
        SnapshotSink,
        snapshot_groups,
    )
    from kraftline.metadata.loader.snapshot_generator import SnapshotGenerator, SnapshotsDisabled
else:
    from kraftline.schema.lazy import lazy_names

    # What only a node needs: importing asyncio takes longer than replaying many a log.
    __getattr__ = lazy_names(
        __name__,
        {
            "loader": ("LoaderClosed", "MetadataLoader"),
            "metrics": ("LoaderMetrics", "finalized_levels"),
            "publisher": ("MetadataPublisher",),
            "publishers": ("PublisherRefused",),
            "snapshot_emitter": (
                "SnapshotDirectory",
                "SnapshotEmitter",
                "SnapshotSink",
                "snapshot_groups",
            ),
            "snapshot_generator": ("SnapshotGenerator", "SnapshotsDisabled"),
        },
    )

__all__ = [
    "UNKNOWN_LEADER",
    "BatchDecoder",
    "CollectedFaults",
    "Effect",
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
    "Placed",
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
    "Transaction",
    "Unreadable",
    "decode_batches",
    "effects",
    "finalized_levels",
    "image_of",
    "images_at",
    "part_of",
    "read_log",
    "record_fault",
    "replay",
    "snapshot_groups",
    "snapshot_id",
    "without_collector",
]
