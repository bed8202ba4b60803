"""Folds batches into one delta, and publishes it when asked to: never inside a transaction.

Differs from Kafka in three things. At an Abort everything since Begin is dropped, also when more
records follow before the next publication (Kafka keeps the aborted records then; its controller
does not). What is published because a transaction begins has the epoch and time of the batch it
ends in, not those of the batch that begins the transaction. And a Begin right behind another is
only a fault (Kafka also publishes an empty delta that ends inside the transaction).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from time import perf_counter_ns

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.configs import ConfigFilter
from kraftline.metadata.loader.batches import Entry, MetadataBatch
from kraftline.metadata.loader.fault_handling import FaultHandler, MetadataFault, record_fault
from kraftline.metadata.loader.manifests import UNKNOWN_LEADER, LeaderAndEpoch, LogDeltaManifest
from kraftline.metadata.loader.transactions import (
    Marker,
    Transactions,
    TransactionState,
    marker_of,
    runs_of,
)

Publish = Callable[[MetadataDelta, MetadataImage, LogDeltaManifest], None]


class BatchLoader:
    """`image` is the last that was published; what was gathered since is in no image yet.

    Invariant: while a transaction is open, the delta has its records and no others; what was
    before is published. With `lazily` that is published with what comes after: the same images for
    who wants only the last, and quicker. Then the delta has no record of an open transaction:
    those, and their faults, wait aside for their End.
    """

    def __init__(
        self,
        publish: Publish,
        faults: FaultHandler,
        *,
        image: MetadataImage = EMPTY,
        known_config: ConfigFilter | None = None,
        lazily: bool = False,
    ) -> None:
        self._publish = publish
        self._faults = faults
        self._known_config = known_config
        self._lazily = lazily
        self.leader: LeaderAndEpoch = UNKNOWN_LEADER
        self.reset(image)

    def reset(self, image: MetadataImage) -> None:
        """Go on from an image; what was gathered, and an open transaction, are forgotten."""
        self.image = image
        self.transactions = Transactions()
        # Where the image would end that was not published when a transaction began.
        self._postponed: Provenance | None = None
        self._offset = image.provenance.last_offset
        self._epoch = image.provenance.last_epoch
        self._time = image.provenance.last_log_time_ms
        self._begin()

    def load(self, batch: MetadataBatch) -> int:
        """Take in a batch; the nanoseconds that took. Publishes where a transaction begins behind
        something else."""
        started = perf_counter_ns()
        for run in runs_of(batch):
            marker = marker_of(run)
            if marker is not None:
                self._mark(batch, run[0], marker)
            elif not (self.transactions.keeps(run) and self._lazily):
                self._replay(*run)
        self._offset = batch.last_offset
        self._epoch = batch.epoch
        self._time = batch.append_timestamp
        self._batches += 1
        self._bytes += batch.size
        elapsed = perf_counter_ns() - started
        self._elapsed += elapsed
        return elapsed

    def flush(self, *, aligned: bool = True) -> None:
        """Publish what was gathered, be it nothing, unless a transaction is open. `aligned` says
        that the last batch was taken in whole."""
        if self.transactions.open is not None:
            if self._postponed is not None:
                self._emit(self._postponed)
            return
        self._emit(self._here(aligned))
        self.transactions.state = TransactionState.NONE

    @property
    def gathered(self) -> MetadataDelta | None:
        """What the next flush publishes; None within a transaction."""
        return self._delta if self.transactions.open is None else None

    def _begin(self) -> None:
        self._delta = MetadataDelta(self.image, self._known_config)
        self._batches = self._bytes = self._elapsed = 0

    def _here(self, aligned: bool) -> Provenance:
        return Provenance(self._offset, self._epoch, self._time, aligned)

    def _mark(self, batch: MetadataBatch, offset: int, marker: Marker) -> None:
        try:
            ended = self.transactions.mark(offset, marker)
        except ReplayError as error:
            self._faults.handle(record_fault(offset, marker, error))
            return
        if ended is not None:
            self._postponed = None
            if self._lazily and self.transactions.state is TransactionState.ENDED:
                for run in ended.waiting:
                    self._replay(*run)
            elif self.transactions.state is TransactionState.ABORTED and not self._lazily:
                self._delta = MetadataDelta(self.image, self._known_config)
            return
        inside = offset > batch.base_offset
        if inside or self._batches:
            if inside:
                self._offset = offset - 1
                self._epoch = batch.epoch
                self._time = batch.append_timestamp
            before = self._here(aligned=not inside)
            if self._lazily:
                self._postponed = before
            else:
                self._emit(before)

    def _replay(self, offset: int, records: Sequence[Entry]) -> None:
        # One iterator through all faults: it knows how many records are left, so which one failed.
        replay, rest = self._delta.replay, iter(records)
        while length_hint(rest):
            try:
                for _ in map(replay, rest):  # type: ignore[arg-type]  # it refuses Unreadable
                    pass
            except Exception as error:
                index = len(records) - length_hint(rest) - 1
                self._faults.handle(record_fault(offset + index, records[index], error))

    def _emit(self, provenance: Provenance) -> None:
        manifest = LogDeltaManifest(
            provenance, self.leader, self._batches, self._elapsed, self._bytes
        )
        delta = self._delta
        try:
            self.image = delta.apply(provenance)
        except Exception as error:
            self._faults.handle(
                MetadataFault(
                    "Error generating new metadata image from metadata delta between offset "
                    f"{self.image.offset} and {provenance.last_offset}",
                    error,
                    offset=provenance.last_offset,
                )
            )
        # Whether it could be applied or not, the next delta starts from the image that is known.
        self._postponed = None
        self._begin()
        self._publish(delta, self.image, manifest)
