"""How the metadata log is kept: Kafka's settings, with Kafka's defaults."""

from __future__ import annotations

import msgspec

_WEEK_MS = 7 * 24 * 60 * 60 * 1000
MAX_BATCH_BYTES = 8 * 1024 * 1024


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in milliseconds; a negative retention means no limit.

    `max_pending_bytes` bounds what waits for the disk, `recent_bytes` what is kept in memory of
    the newest batches, so that listeners need not read them from the disk.
    """

    segment_bytes: int = 1024 * 1024 * 1024  # metadata.log.segment.bytes
    segment_ms: int = _WEEK_MS  # metadata.log.segment.ms
    retention_bytes: int = 100 * 1024 * 1024  # metadata.max.retention.bytes
    retention_ms: int = _WEEK_MS  # metadata.max.retention.ms
    max_batch_bytes: int = MAX_BATCH_BYTES  # internal.metadata.max.batch.size.in.bytes
    delete_delay_ms: int = 60_000  # internal.metadata.delete.delay.millis
    clean_interval_ms: int = 60_000
    max_pending_bytes: int = 4 * MAX_BATCH_BYTES
    recent_bytes: int = MAX_BATCH_BYTES
