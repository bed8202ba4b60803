"""What a partition knows of its producers: the last five batches of each, and open transactions.

- A batch with the sequences of one that is kept is a duplicate: it gets that one's offsets again.
- Sequences follow each other within an epoch, 0 after 2**31 - 1; a new epoch begins at 0. A
  producer that is not known may begin anywhere.
- An epoch below the known one is refused.
- A transaction is open from its first batch to its marker. Offsets from the oldest open one on are
  not stable, nor are those of one whose marker is above the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from kraftline.records.record import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_SEQUENCE
from kraftline.storage.log.batch_fields import Origin
from kraftline.storage.log.problems import AppendRefused, ErrorCode
from kraftline.storage.producer_snapshot import ProducerEntry
from kraftline.storage.txn_index import AbortedTxn

KEPT_BATCHES: Final = 5
NONE: Final = -1


class KeptBatch(NamedTuple):
    """A batch by its end: its first sequence and offset follow from `offset_delta`."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class Producer:
    """The state of one producer. `txn_first_offset` is -1 while no transaction is open."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "id",
        "last_timestamp",
        "txn_first_offset",
    )

    def __init__(self, id: int, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.id = id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = NONE
        self.batches: list[KeptBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Marker(msgspec.Struct, frozen=True):
    """The end of a transaction, as its control record says."""

    commit: bool
    coordinator_epoch: int


class ProducerStates:
    """All producers of a partition. `end_offset` is up to where they are known."""

    __slots__ = ("_ended", "_open", "_producers", "end_offset", "expiration_ms", "partition")

    def __init__(self, partition: str, expiration_ms: int) -> None:
        self.partition = partition
        self.expiration_ms = expiration_ms
        self.end_offset = 0
        self._producers: dict[int, Producer] = {}
        # First offsets of open transactions, rising as they begin, with their producers.
        self._open: dict[int, int] = {}
        # Transactions that have ended, by first offset, with the offset of their marker.
        self._ended: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, id: int) -> Producer | None:
        return self._producers.get(id)

    def all(self) -> tuple[Producer, ...]:
        return tuple(self._producers.values())

    # Taking batches in

    def duplicate(self, id: int, epoch: int, first: int, last: int) -> KeptBatch | None:
        """The kept batch that has just these sequences."""
        producer = self._producers.get(id)
        if producer is not None and producer.epoch == epoch:
            for batch in producer.batches:
                if batch.last_sequence == last and batch.first_sequence == first:
                    return batch
        return None

    def check_batch(
        self, id: int, epoch: int, first: int, offset: int, origin: Origin, transactional: bool
    ) -> None:
        """AppendRefused unless a batch of data may follow at the offset."""
        producer = self._producers.get(id)
        if producer is None or origin is Origin.REPLICATION:
            return
        self._check_epoch(producer, epoch, offset)
        if origin is Origin.CLIENT:
            if epoch != producer.epoch:
                if first != 0 and producer.epoch != NO_PRODUCER_EPOCH:
                    raise AppendRefused(
                        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                        f"sequence {first} for the new epoch {epoch} of producer {id} at offset "
                        f"{offset} in {self.partition}, whose epoch was {producer.epoch}",
                    )
            else:
                last = producer.last_sequence
                if first != last + 1 and not (first == 0 and last == MAX_SEQUENCE):
                    raise AppendRefused(
                        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                        f"Out of order sequence number for producer {id} at offset {offset} in "
                        f"partition {self.partition}: {first} (incoming seq. number), {last} "
                        "(current end sequence number)",
                    )
        if producer.txn_first_offset != NONE and not transactional:
            raise AppendRefused(
                ErrorCode.INVALID_TXN_STATE,
                f"a batch outside of the open transaction of producer {id} at offset {offset} "
                f"in {self.partition}",
            )

    def check_marker(self, id: int, epoch: int, marker: Marker, offset: int) -> None:
        """AppendRefused unless a transaction of this producer may end at the offset."""
        producer = self._producers.get(id)
        if producer is None:
            return
        self._check_epoch(producer, epoch, offset)
        if producer.coordinator_epoch > marker.coordinator_epoch:
            raise AppendRefused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {marker.coordinator_epoch} for producer {id} at "
                f"offset {offset} in {self.partition}, where {producer.coordinator_epoch} is known",
            )

    def add_batch(
        self,
        id: int,
        epoch: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """A batch of data has been appended."""
        producer = self._producers.get(id)
        if producer is None:
            producer = self._producers[id] = Producer(id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        batches = producer.batches
        if len(batches) == KEPT_BATCHES:
            del batches[0]
        batches.append(KeptBatch(last_sequence, last_offset, last_offset - first_offset, timestamp))
        producer.last_timestamp = timestamp
        if transactional and producer.txn_first_offset == NONE:
            producer.txn_first_offset = first_offset
            self._open[first_offset] = id

    def add_marker(
        self, id: int, epoch: int, marker: Marker, offset: int, timestamp: int
    ) -> AbortedTxn | None:
        """A marker has been appended; what the transaction index gets to know of it."""
        producer = self._producers.get(id)
        if producer is None:
            producer = self._producers[id] = Producer(id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        first_offset, producer.txn_first_offset = producer.txn_first_offset, NONE
        if first_offset == NONE:
            return None  # a transaction without data here
        del self._open[first_offset]
        self._ended[first_offset] = offset
        if marker.commit:
            return None
        return AbortedTxn(id, first_offset, offset, min(self._open, default=offset + 1))

    # Stability

    @property
    def first_unstable_offset(self) -> int | None:
        if not self._open and not self._ended:
            return None
        return min((*self._open, *self._ended))

    def replicated(self, high_watermark: int) -> None:
        """Transactions whose marker is below the high watermark are over for everyone."""
        if self._ended:
            self._ended = {
                first: last for first, last in self._ended.items() if last >= high_watermark
            }

    # Coming and going

    def expire(self, now: int) -> None:
        """Forget producers that have written nothing for so long, unless in a transaction."""
        gone = [each.id for each in self._producers.values() if self._is_expired(each, now)]
        for id in gone:
            del self._producers[id]

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self._open.clear()
        self._ended.clear()
        self.end_offset = end_offset

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now: int) -> None:
        """What a snapshot says."""
        self.clear(end_offset)
        for entry in entries:
            producer = Producer(entry.producer_id, entry.producer_epoch)
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp = entry.timestamp
            producer.txn_first_offset = max(entry.current_txn_first_offset, NONE)
            if entry.last_offset >= 0:
                producer.batches.append(
                    KeptBatch(
                        entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp
                    )
                )
            if self._is_expired(producer, now):
                continue
            self._producers[producer.id] = producer
            if producer.txn_first_offset != NONE:
                self._open[producer.txn_first_offset] = producer.id

    def entries(self) -> list[ProducerEntry]:
        """What goes into a snapshot."""
        found = []
        for each in self._producers.values():
            last = each.batches[-1] if each.batches else KeptBatch(NO_SEQUENCE, -1, 0, -1)
            found.append(
                ProducerEntry(
                    each.id,
                    each.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.offset_delta,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    each.txn_first_offset,
                )
            )
        return found

    def _is_expired(self, producer: Producer, now: int) -> bool:
        return (
            producer.txn_first_offset == NONE
            and now - producer.last_timestamp >= self.expiration_ms
        )

    def _check_epoch(self, producer: Producer, epoch: int, offset: int) -> None:
        if epoch < producer.epoch:
            raise AppendRefused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer.id} at offset {offset} in {self.partition} is "
                f"{epoch}, which is smaller than the last seen epoch {producer.epoch}",
            )
