"""The same replay without an event loop, for tools: images out of batches, one after the other."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import ConfigFilter
from kraftline.metadata.loader.batch_loader import BatchLoader
from kraftline.metadata.loader.batches import MetadataBatch, part_of
from kraftline.metadata.loader.fault_handling import CollectedFaults, FaultHandler
from kraftline.metadata.loader.manifests import LogDeltaManifest, Manifest
from kraftline.metadata.loader.snapshot_source import Snapshot, load_snapshot
from kraftline.metadata.loader.transactions import Transaction


class Publication(NamedTuple):
    """An image, and what led there from the one before."""

    delta: MetadataDelta
    image: MetadataImage
    manifest: Manifest


class Replay:
    """Takes batches, and gives a publication for each `flush` outside a transaction, and for each
    transaction that begins behind something else.

    Faults go to the handler, and the record that gave one has no effect; without a handler they
    are collected in `faults`. With `lazily` beginning transactions publish nothing.
    """

    def __init__(
        self,
        image: MetadataImage = EMPTY,
        *,
        faults: FaultHandler | None = None,
        known_config: ConfigFilter | None = None,
        lazily: bool = False,
    ) -> None:
        self.faults = CollectedFaults()
        self._handler: FaultHandler = self.faults if faults is None else faults
        self._known_config = known_config
        self._out: list[Publication] = []
        self._loader = BatchLoader(
            self._keep, self._handler, image=image, known_config=known_config, lazily=lazily
        )

    @property
    def image(self) -> MetadataImage:
        """The last that was published."""
        return self._loader.image

    @property
    def transaction(self) -> Transaction | None:
        """The one that is open: nothing of it has taken effect."""
        return self._loader.transactions.open

    def take(self, batch: MetadataBatch) -> list[Publication]:
        """Gather a batch; what its transactions published before they began."""
        self._loader.load(batch)
        return self._taken()

    def flush(self, *, aligned: bool = True) -> list[Publication]:
        """Publish what was gathered; nothing inside a transaction."""
        self._loader.flush(aligned=aligned)
        return self._taken()

    def load_snapshot(self, snapshot: Snapshot) -> Publication:
        """Go on from a snapshot: what it does not name is gone."""
        delta = MetadataDelta(self.image, self._known_config)
        *_, manifest = load_snapshot(delta, snapshot, self._handler)
        assert manifest is not None
        image = delta.apply(manifest.provenance)
        self._loader.reset(image)
        return Publication(delta, image, manifest)

    def _keep(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self._out.append(Publication(delta, image, manifest))

    def _taken(self) -> list[Publication]:
        out, self._out = self._out, []
        return out


def replay(
    batches: Iterable[MetadataBatch],
    image: MetadataImage = EMPTY,
    *,
    faults: FaultHandler | None = None,
    known_config: ConfigFilter | None = None,
) -> Iterator[Publication]:
    """Every image on the way: one for each batch that ends outside a transaction."""
    replaying = Replay(image, faults=faults, known_config=known_config)
    for batch in batches:
        yield from replaying.take(batch)
        yield from replaying.flush()


def image_of(
    batches: Iterable[MetadataBatch],
    image: MetadataImage = EMPTY,
    *,
    as_of: int | None = None,
    faults: FaultHandler | None = None,
    known_config: ConfigFilter | None = None,
) -> MetadataImage:
    """The last image only, which is quicker; with `as_of`, that of `images_at`."""
    replaying = Replay(image, faults=faults, known_config=known_config, lazily=True)
    with without_collector():
        (last,) = images_at(replaying, batches, [sys.maxsize if as_of is None else as_of])
    return last


def images_at(
    replaying: Replay, batches: Iterable[MetadataBatch], offsets: Iterable[int]
) -> Iterator[MetadataImage]:
    """The image at each of some rising offsets: every record up to and including it has taken
    effect. A transaction that is open there has none."""
    left = iter(offsets)
    wanted = next(left, None)
    for batch in batches:
        first = batch.base_offset
        while wanted is not None and wanted < batch.last_offset:
            inside = wanted >= batch.base_offset
            if inside:
                replaying.take(part_of(batch, first, wanted))
                first = wanted + 1
            replaying.flush(aligned=not inside)
            yield replaying.image
            wanted = next(left, None)
        if wanted is None:
            return
        replaying.take(part_of(batch, first, batch.last_offset))
    while wanted is not None:
        replaying.flush()
        yield replaying.image
        wanted = next(left, None)


@contextmanager
def without_collector() -> Iterator[None]:
    """Records and images have no cycles: looking for some takes a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
