"""The chain of publishers: those who are up to date, in order, and those who wait for a first
complete delta."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kraftline.errors import KraftlineError
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader.fault_handling import FatalFault, FaultHandler, MetadataFault
from kraftline.metadata.loader.manifests import LeaderAndEpoch, Manifest, SnapshotManifest
from kraftline.metadata.loader.publisher import MetadataPublisher

_logger = logging.getLogger(__name__)


class PublisherRefused(KraftlineError):
    """A publisher cannot be installed or removed; the fault handler has been told."""


class Publishers:
    """A fault of one is told with its name, and the others still have their turn; only then a
    fatal one is raised.

    Differs from Kafka in two things: one that fails at its first image is closed, not just
    forgotten, and a list that has a name twice is refused."""

    def __init__(self, faults: FaultHandler) -> None:
        self._faults = faults
        self._waiting: dict[str, MetadataPublisher] = {}
        self._active: dict[str, MetadataPublisher] = {}
        self._fatal: FatalFault | None = None

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(self._waiting)

    @property
    def active(self) -> tuple[str, ...]:
        return tuple(self._active)

    def add(self, publishers: Sequence[MetadataPublisher]) -> None:
        """They wait from now on; none is added if one cannot be."""
        names: set[str] = set()
        for new in publishers:
            old = self._active.get(new.name) or self._waiting.get(new.name)
            if old is new:
                raise self._refused(
                    f"Attempted to install publisher {new.name}, which is already installed.", new
                )
            if old is not None or new.name in names:
                raise self._refused(
                    f"Attempted to install a new publisher named {new.name}, but there is already "
                    "a publisher with that name.",
                    new,
                )
            names.add(new.name)
        self._waiting.update((new.name, new) for new in publishers)

    async def remove(self, publisher: MetadataPublisher) -> None:
        """Take it out and close it."""
        for chain in (self._active, self._waiting):
            if chain.get(publisher.name) is publisher:
                del chain[publisher.name]
                await self._close(publisher)
                self._raise_if_fatal()
                return
        raise self._refused(
            f"Attempted to remove publisher {publisher.name}, which is not installed.", publisher
        )

    async def initialize(
        self,
        delta: MetadataDelta,
        image: MetadataImage,
        manifest: SnapshotManifest,
        leader: LeaderAndEpoch,
    ) -> None:
        """Give those who wait their first, complete delta. One that fails is out, and closed."""
        where = f"with a snapshot at offset {image.offset}"
        for name, publisher in list(self._waiting.items()):
            del self._waiting[name]
            _logger.info("InitializeNewPublishers: initializing %s %s", name, where)
            try:
                publisher.on_metadata_update(delta, image, manifest)
                publisher.on_controller_change(leader)
            except Exception as error:
                self._fault(f"Unhandled error initializing {name} {where}", name, error)
                await self._close(publisher)
            else:
                self._active[name] = publisher
        self._raise_if_fatal()

    def publish(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        for name, publisher in self._active.items():
            try:
                publisher.on_metadata_update(delta, image, manifest)
            except Exception as error:
                self._fault(
                    "Unhandled error publishing the new metadata image ending at "
                    f"{manifest.provenance.last_offset} with publisher {name}",
                    name,
                    error,
                )
        self._raise_if_fatal()

    def change_controller(self, leader: LeaderAndEpoch) -> None:
        for name, publisher in self._active.items():
            try:
                publisher.on_controller_change(leader)
            except Exception as error:
                self._fault(
                    f"Unhandled error publishing the new leader change to {leader} with publisher "
                    f"{name}",
                    name,
                    error,
                )
        self._raise_if_fatal()

    async def close(self) -> None:
        """Close all: first those who never got anything, then the others, each in order."""
        for chain in (self._waiting, self._active):
            for publisher in list(chain.values()):
                del chain[publisher.name]
                await self._close(publisher)
        self._raise_if_fatal()

    async def _close(self, publisher: MetadataPublisher) -> None:
        try:
            await publisher.close()
        except Exception as error:
            self._fault(
                f"Got unexpected exception while closing publisher {publisher.name}",
                publisher.name,
                error,
            )

    def _fault(self, message: str, publisher: str, error: Exception) -> None:
        try:
            self._faults.handle(MetadataFault(message, error, publisher=publisher))
        except FatalFault as fatal:
            self._fatal = self._fatal or fatal

    def _refused(self, message: str, publisher: MetadataPublisher) -> PublisherRefused:
        self._faults.handle(MetadataFault(message, publisher=publisher.name))
        return PublisherRefused(message)

    def _raise_if_fatal(self) -> None:
        fatal, self._fatal = self._fatal, None
        if fatal is not None:
            raise fatal
