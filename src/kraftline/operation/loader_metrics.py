"""The metrics of the loader: what metadata the node has acted on, how long that took it, what it
could not take in, and the snapshots it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftline.metadata.loader import SnapshotEmitter
from kraftline.metadata.loader.metrics import Distribution, LoaderMetrics
from kraftline.operation.exposition import Family, Sample, one

_APPLIED: Final = "kafka_server_broker_metadata_metrics_"
_LOADER: Final = "kafka_server_metadataloader_"
_SNAPSHOTS: Final = "kafka_server_snapshotemitter_latestsnapshotgenerated"
_BATCHES: Final = "kafka_server_brokermetadatalistener_metadatabatch"


def loader_metrics(
    metrics: LoaderMetrics, snapshots: SnapshotEmitter, end_offset: int
) -> Iterator[Family]:
    """`end_offset` is the first that is not committed."""
    version = metrics.metadata_version
    for name, help, value in (
        (
            f"{_APPLIED}last_applied_record_offset",
            "The last metadata that this broker has acted on.",
            metrics.last_applied_offset,
        ),
        (
            f"{_APPLIED}last_applied_record_timestamp",
            "When that was written, in milliseconds.",
            metrics.last_applied.last_log_time_ms,
        ),
        (f"{_APPLIED}last_applied_record_lag_ms", "How long ago that was.", metrics.lag_ms()),
        (
            f"{_APPLIED}metadata_load_error_count",
            "Records, batches and snapshots that did not fit or could not be read.",
            metrics.load_faults,
        ),
        (
            f"{_APPLIED}metadata_apply_error_count",
            "Times that a part of the node failed to act on metadata.",
            metrics.publish_faults,
        ),
        (
            f"{_LOADER}currentmetadataversion",
            "The metadata version as its feature level.",
            0 if version is None else version.level,
        ),
        (
            f"{_LOADER}currentcontrollerid",
            "The controller that is active, -1 where none is known.",
            metrics.controller_id,
        ),
        (f"{_LOADER}handleloadsnapshotcount", "Snapshots loaded.", metrics.handled_snapshots),
        (
            f"{_SNAPSHOTS}bytes",
            "Size of the newest snapshot that this node wrote.",
            snapshots.generated_bytes,
        ),
        (
            f"{_SNAPSHOTS}agems",
            "Milliseconds since then, or since the node was started.",
            snapshots.age_ms,
        ),
        (
            "kraftline_metadata_loader_lag",
            "Committed records that the node has not acted on.",
            metrics.lag(end_offset) or 0,
        ),
    ):
        yield one(name, "gauge", help, value)
    yield _summary(f"{_BATCHES}sizes", "Records in a batch of metadata.", metrics.batch_sizes)
    yield _summary(
        f"{_BATCHES}processingtimeus",
        "Microseconds to take a batch of metadata in.",
        metrics.batch_processing_ns,
        1000,
    )
    yield _summary(
        "kraftline_metadata_loader_publication_seconds",
        "How long all parts of the node took to act on new metadata.",
        metrics.publication_ns,
        1_000_000_000,
    )


def _summary(name: str, help: str, seen: Distribution, unit: int = 1) -> Family:
    total = seen.total if unit == 1 else seen.total / unit
    return Family(
        name, "summary", help, (Sample(total, suffix="_sum"), Sample(seen.count, suffix="_count"))
    )
