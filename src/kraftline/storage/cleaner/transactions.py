"""What the cleaner knows of transactions while it walks through a log.

The records of an aborted transaction go at once. Its marker stays until none of its batches is
there any more, and then until the delete horizon; so does that of a committed one. For an aborted
one whose marker is kept because of its batches, the cleaned segment's index has an entry.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from kraftline.records.batch import DefaultBatch
from kraftline.records.control import ControlType, type_of
from kraftline.storage.txn_index import AbortedTxn


class Transactions:
    """Feed it every batch that belongs to a producer, in order. `index` collects the entries of
    aborted transactions for the segment that is being written."""

    def __init__(self) -> None:
        self.index: list[AbortedTxn] = []
        self._coming: list[tuple[int, int, AbortedTxn]] = []
        self._count = 0
        # By producer: the aborted transaction that is being read, and whether a batch of it was.
        self._aborted: dict[int, tuple[AbortedTxn, bool]] = {}
        self._committed: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Aborted transactions that come, by the indexes; any of them may be told again."""
        for each in aborted:
            self._count += 1  # two may begin at the same offset, told twice
            heapq.heappush(self._coming, (each.first_offset, self._count, each))

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """A transactional batch of data: whether its transaction was aborted."""
        self._reach(last_offset)
        found = self._aborted.get(producer_id)
        if found is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = (found[0], True)
        return True

    def is_empty(self, batch: DefaultBatch) -> bool:
        """A control batch: whether no batch of the transaction that it ends was met."""
        self._reach(batch.last_offset)
        records = batch.records(check_crc=False)
        if not records:
            return True  # cleaned before
        match type_of(records[0]):
            case ControlType.ABORT:
                found = self._aborted.pop(batch.producer_id, None)
                if found is None or not found[1]:
                    return True
                self.index.append(found[0])
                return False
            case ControlType.COMMIT:
                if batch.producer_id in self._committed:
                    self._committed.remove(batch.producer_id)
                    return False
                return True
            case _:
                return False

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            aborted = heapq.heappop(self._coming)[2]
            self._aborted.setdefault(aborted.producer_id, (aborted, False))
