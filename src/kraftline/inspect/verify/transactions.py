"""Aborted transactions: the `.txnindex` of a segment against the ABORT markers in its log.

Every entry must have its marker, and begin between the producer's marker before it and the first
data: consumers drop what lies from there on. A marker needs an entry where data of its transaction
was seen; without data there is none, and compaction drops entries once the data is gone.
"""

from __future__ import annotations

import os
import time
from collections import deque

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.verify.batches import Rows, Walked
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.headers import LogState
from kraftline.inspect.verify.indexes import IndexPlace, refuse_index
from kraftline.records.runs import Run
from kraftline.schema.control.frame import ControlType
from kraftline.schema.types import Message
from kraftline.storage import txn_index
from kraftline.storage.names import FileKind
from kraftline.storage.txn_index import AbortedTxn, read_txn_index

_TRANSACTIONAL = 0x10
_CONTROL = 0x20
# Bounds on what hostile bytes can make us remember.
_MOST_OPEN = 1_000_000
_MOST_MISSING = 1000
_A_MOMENT = 0.1


class TransactionCheck:
    """For one segment; `log` remembers transactions that began in an earlier one.

    Where it is not `judged`, it only follows which transactions are open.
    """

    def __init__(
        self,
        segment: str,
        place: IndexPlace | None,
        log: LogState,
        report: Report,
        *,
        judged: bool,
    ) -> None:
        self.segment = segment
        self.place = place
        self.report = report
        self.open = log.open_transactions
        self.ended = log.ended_transactions
        self.entries = open_txn_index(place, report) if judged else None
        self.slot = 0
        self.data: deque[tuple[int, int]] = deque()
        self.missing: list[tuple[int, int]] = []

    def rows(self, rows: Rows) -> None:
        self._began(None)
        rows = rows.trusted()
        if not any(bits & _TRANSACTIONAL for bits in set(rows.attributes)):
            return
        for n, bits in enumerate(rows.attributes):
            if bits & (_TRANSACTIONAL | _CONTROL) == _TRANSACTIONAL and rows.magics[n] == 2:
                self.data.append((rows.base_offsets[n], rows.producer_ids[n]))

    def records(self, run: Run) -> None:
        """Markers come through `control`."""

    def control(self, offset: int, producer_id: int, kind: int, message: Message | None) -> None:
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return
        self._began(offset)
        first_data = self.open.pop(producer_id, None)
        previous = self.ended.pop(producer_id, -1)
        if len(self.ended) < _MOST_OPEN:
            self.ended[producer_id] = offset
        if kind != ControlType.ABORT or self.entries is None:
            return
        entries = self.entries
        while self.slot < len(entries) and entries[self.slot].last_offset < offset:
            self._without_marker(entries[self.slot])
        if self.slot < len(entries) and entries[self.slot].last_offset == offset:
            entry = entries[self.slot]
            if entry.producer_id != producer_id:
                self._bad(
                    f"producer {entry.producer_id}, but the ABORT marker is of {producer_id}",
                    offset,
                )
            elif not 0 <= entry.first_offset <= offset:
                where = "behind its end" if entry.first_offset > offset else "which is negative"
                self._bad(f"begins at offset {entry.first_offset}, {where}", offset)
            elif first_data is not None and entry.first_offset > first_data:
                self._bad(
                    f"begins at offset {entry.first_offset}, but the transaction has data from "
                    f"{first_data} on",
                    offset,
                )
            elif entry.first_offset <= previous:
                self._bad(
                    f"begins at offset {entry.first_offset}, but the producer's transaction before "
                    f"ended at {previous}",
                    offset,
                )
            elif not 0 <= entry.last_stable_offset <= offset + 1:
                # What came behind the marker was not there yet when the entry was written.
                self._bad(
                    f"last stable offset {entry.last_stable_offset}, where at most {offset + 1} "
                    "was stable",
                    offset,
                )
            self.slot += 1
        elif first_data is not None and len(self.missing) < _MOST_MISSING:
            self.missing.append((offset, producer_id))

    def finish(self, walked: Walked) -> None:
        entries = self.entries or ()
        while self.slot < len(entries):
            self._without_marker(entries[self.slot])
        if not self.missing:
            return
        # A live broker makes the file at the first abort, and writes it right after the log.
        file = os.path.splitext(self.segment)[0] + FileKind.TXN_INDEX.value
        place = self.place or IndexPlace(file)
        if place.may_be_preallocated:
            time.sleep(_A_MOMENT)
        known = {entry.last_offset for entry in open_txn_index(place, None) or ()}
        for offset, producer_id in self.missing:
            if offset not in known:
                self.report.add(
                    "txnindex-entry",
                    place.file,
                    f"the transaction of producer {producer_id} that was aborted at offset "
                    f"{offset} is not in the index",
                    offset=offset,
                    meaning=place.meaning,
                )

    def _began(self, before: int | None) -> None:
        """Take in the transactional data that lies before an offset."""
        while self.data and (before is None or self.data[0][0] < before):
            offset, producer_id = self.data.popleft()
            if len(self.open) < _MOST_OPEN:
                self.open.setdefault(producer_id, offset)

    def _without_marker(self, entry: AbortedTxn) -> None:
        self._bad(
            f"no ABORT marker of producer {entry.producer_id} is at offset {entry.last_offset}",
            entry.last_offset,
        )
        self.slot += 1

    def _bad(self, problem: str, offset: int) -> None:
        assert self.place is not None
        self.report.add(
            "txnindex-entry",
            self.place.file,
            f"entry {self.slot}: {problem}",
            position=self.slot * txn_index.ENTRY,
            offset=offset,
            meaning=self.place.meaning,
        )


def open_txn_index(
    place: IndexPlace | None, report: Report | None
) -> tuple[AbortedTxn, ...] | None:
    """The entries; none where there is no index, None where it cannot be read."""
    if place is None:
        return ()
    try:
        entries = read_txn_index(place.file)
    except (BadData, NotKafka) as error:
        if report is not None:
            refuse_index(error, place, report)
        return None
    if report is not None:
        report.read_file(len(entries) * txn_index.ENTRY)
    return entries
