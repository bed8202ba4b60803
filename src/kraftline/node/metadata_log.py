"""How the metadata log is kept: `metadata.log.*` and `metadata.max.*`."""

from __future__ import annotations

from kraftline.config.effective import Config
from kraftline.raft import LogSettings


def metadata_log_settings(config: Config) -> LogSettings:
    internal = config["internal.metadata.log.segment.bytes"]
    return LogSettings(
        segment_bytes=(
            internal if isinstance(internal, int) else config.whole("metadata.log.segment.bytes")
        ),
        segment_ms=config.whole("metadata.log.segment.ms"),
        retention_bytes=config.whole("metadata.max.retention.bytes"),
        retention_ms=config.whole("metadata.max.retention.ms"),
        max_batch_bytes=config.whole("internal.metadata.max.batch.size.in.bytes"),
        delete_delay_ms=config.whole("internal.metadata.delete.delay.millis"),
    )
