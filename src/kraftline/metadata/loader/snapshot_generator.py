"""The publisher that has snapshots written: after so many bytes of log, or so much time.

Only where the image ends with a batch, never two at once, and none after metadata could not be
loaded: such an image may be wrong, and a snapshot would make that last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader.fault_handling import FaultHandler, MetadataFault
from kraftline.metadata.loader.manifests import LeaderAndEpoch, Manifest, SnapshotManifest
from kraftline.metadata.loader.snapshot_source import name_of

_logger = logging.getLogger(__name__)
MAX_BYTES = 20 * 1024 * 1024  # metadata.log.max.record.bytes.between.snapshots
MAX_INTERVAL_MS = 60 * 60 * 1000  # metadata.log.max.snapshot.interval.ms
LOADING_FAULT = "metadata loading fault"


class Emitter(Protocol):
    async def maybe_emit(self, image: MetadataImage) -> object:
        """Write the image's snapshot, unless it is there. Must not keep the event loop."""


class SnapshotsDisabled:
    """Why no snapshots are written any more; the first reason stays."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def disable(self, reason: str) -> None:
        self.reason = self.reason or reason

    def on_loading_fault(self, fault: MetadataFault) -> None:
        """The `action` for the loader's fault handler, as Kafka has it."""
        self.disable(LOADING_FAULT)


class SnapshotGenerator:
    """A publisher. `max_interval_ms` 0: by bytes only. `clock_ns` counts as time does."""

    name = "SnapshotGenerator"

    def __init__(
        self,
        emitter: Emitter,
        faults: FaultHandler,
        *,
        max_bytes: int = MAX_BYTES,
        max_interval_ms: int = MAX_INTERVAL_MS,
        disabled: SnapshotsDisabled | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._emitter = emitter
        self._faults = faults
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._clock_ns = clock_ns
        self.disabled = SnapshotsDisabled() if disabled is None else disabled
        self._emitting: asyncio.Task[None] | None = None
        self._reset()

    @property
    def is_emitting(self) -> bool:
        return self._emitting is not None and not self._emitting.done()

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if isinstance(manifest, SnapshotManifest):
            _logger.debug(
                "Resetting the snapshot counters because we just read %s.",
                name_of(image.provenance),
            )
            self._reset()
            return
        self._bytes += manifest.bytes
        reason = self._reason()
        if reason is not None and not self.is_emitting:
            self._maybe_emit(reason, image)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Every node writes its own snapshots."""

    def begin_shutdown(self) -> None:
        self.disabled.disable("we are shutting down")

    async def close(self) -> None:
        """No more; one that is being written is waited for."""
        self.begin_shutdown()
        await self.idle()

    async def idle(self) -> None:
        """Return when no snapshot is being written."""
        if self._emitting is not None:
            await self._emitting

    def _reset(self) -> None:
        self._bytes = 0
        self._since_ns = self._clock_ns()

    def _reason(self) -> str | None:
        if self._bytes >= self._max_bytes:
            return f"we have replayed at least {self._max_bytes} bytes"
        waited_ms = (self._clock_ns() - self._since_ns) // 1_000_000
        if self._max_interval_ms and waited_ms >= self._max_interval_ms:
            return f"we have waited at least {self._max_interval_ms // 60_000} minute(s)"
        return None

    def _maybe_emit(self, reason: str, image: MetadataImage) -> None:
        snapshot = name_of(image.provenance)
        refusal = "Not emitting %s despite the fact that %s because snapshots are disabled; %s"
        if self.disabled.reason is not None:
            _logger.error(refusal, snapshot, reason, self.disabled.reason)
        elif not image.provenance.batch_aligned:
            _logger.debug(refusal, snapshot, reason, "metadata image is not batch aligned")
        else:
            self._reset()
            _logger.info("Creating new KRaft snapshot file %s because %s.", snapshot, reason)
            self._emitting = asyncio.create_task(self._emit(image), name="snapshot-generator")

    async def _emit(self, image: MetadataImage) -> None:
        try:
            await self._emitter.maybe_emit(image)
        except Exception as error:
            self._faults.handle(
                MetadataFault(
                    "KRaft snapshot file generation error",
                    error,
                    offset=image.offset,
                    publisher=self.name,
                )
            )
