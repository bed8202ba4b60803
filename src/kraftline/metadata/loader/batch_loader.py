"""Folds batches into one delta, and publishes it when asked to: never inside a transaction.

Differs from Kafka in two things. At an Abort everything since Begin is dropped, also when more
records follow before the next publication (Kafka keeps the aborted records then; its controller
does not). And what is published because a transaction begins has the epoch and time of the batch
it ends in, not those of the batch that begins the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.configs import ConfigFilter
from kraftline.metadata.loader.batches import Entry, MetadataBatch, Unreadable
from kraftline.metadata.loader.fault_handling import FaultHandler, MetadataFault
from kraftline.metadata.loader.manifests import UNKNOWN_LEADER, LeaderAndEpoch, LogDeltaManifest
from kraftline.metadata.loader.transactions import (
    MARKERS,
    TransactionState,
    after_marker,
    after_record,
)

Publish = Callable[[MetadataDelta, MetadataImage, LogDeltaManifest], None]
_SLOW = MARKERS | {Unreadable}


class BatchLoader:
    """`image` is the last that was published; what was gathered since is in no image yet.

    Invariant: while a transaction is open, all that was gathered is of that transaction.
    """

    def __init__(
        self,
        publish: Publish,
        faults: FaultHandler,
        *,
        image: MetadataImage = EMPTY,
        known_config: ConfigFilter | None = None,
    ) -> None:
        self._publish = publish
        self._faults = faults
        self._known_config = known_config
        self.leader: LeaderAndEpoch = UNKNOWN_LEADER
        self.has_seen_record = False
        self.reset(image)

    def reset(self, image: MetadataImage) -> None:
        """Go on from an image; what was gathered, and an open transaction, are forgotten."""
        self.image = image
        self.transaction = TransactionState.NONE
        self.has_seen_record = self.has_seen_record or image.offset >= 0
        self._offset = image.provenance.last_offset
        self._epoch = image.provenance.last_epoch
        self._time = image.provenance.last_log_time_ms
        self._begin()

    def _begin(self) -> None:
        self._delta = MetadataDelta(self.image, self._known_config)
        self._batches = self._bytes = self._elapsed = 0

    @property
    def last_offset(self) -> int:
        """Of what has been loaded, published or not."""
        return self._offset

    def load(self, batch: MetadataBatch) -> int:
        """Take in a batch; the nanoseconds that took. Publishes where a transaction begins behind
        something else."""
        started = perf_counter_ns()
        records = batch.records
        if records:
            self.has_seen_record = True
            if _SLOW.isdisjoint(map(type, records)):
                self.transaction = after_record(self.transaction)
                self._replay_all(batch)
            else:
                self._step_through(batch)
        self._offset = batch.last_offset
        self._epoch = batch.epoch
        self._time = batch.append_timestamp
        self._batches += 1
        self._bytes += batch.size
        elapsed = perf_counter_ns() - started
        self._elapsed += elapsed
        return elapsed

    def flush(self, *, aligned: bool = True) -> bool:
        """Publish what was gathered, be it nothing; False inside a transaction. `aligned` says
        that the last batch was taken in whole."""
        if self.transaction.is_open:
            return False
        self._emit(aligned)
        self.transaction = TransactionState.NONE
        return True

    def _replay_all(self, batch: MetadataBatch) -> None:
        """The usual case: data records only."""
        replay = self._delta.replay
        index = 0
        try:
            for record in batch.records:
                replay(record)  # type: ignore[arg-type]  # none is Unreadable here
                index += 1
        except Exception as error:
            self._fault(batch, index, batch.records[index], error)
            for rest in range(index + 1, len(batch.records)):
                self._replay(batch, rest)

    def _step_through(self, batch: MetadataBatch) -> None:
        for index, record in enumerate(batch.records):
            if type(record) in MARKERS:
                self._mark(batch, index)
            else:
                self.transaction = after_record(self.transaction)
                self._replay(batch, index)

    def _mark(self, batch: MetadataBatch, index: int) -> None:
        marker = batch.records[index]
        assert not isinstance(marker, Unreadable)
        try:
            after = after_marker(self.transaction, marker)
        except ReplayError as error:
            self._fault(batch, index, marker, error)
            return
        if after is TransactionState.STARTED and (index or self._batches):
            if index:
                self._offset = batch.base_offset + index - 1
                self._epoch = batch.epoch
                self._time = batch.append_timestamp
            self._emit(aligned=not index)
        elif after is TransactionState.ABORTED:
            self._delta = MetadataDelta(self.image, self._known_config)
        self.transaction = after

    def _replay(self, batch: MetadataBatch, index: int) -> None:
        record = batch.records[index]
        if isinstance(record, Unreadable):
            self._fault(batch, index, record, record.error)
            return
        try:
            self._delta.replay(record)
        except Exception as error:
            self._fault(batch, index, record, error)

    def _emit(self, aligned: bool) -> None:
        provenance = Provenance(self._offset, self._epoch, self._time, aligned)
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
        self._begin()
        self._publish(delta, self.image, manifest)

    def _fault(self, batch: MetadataBatch, index: int, record: Entry, error: Exception) -> None:
        offset = batch.base_offset + index
        if isinstance(error, ReplayError):
            error.at(offset=offset)
        self._faults.handle(
            MetadataFault(
                f"Error loading metadata log record from offset {offset}",
                error,
                offset=offset,
                record=record,
            )
        )
