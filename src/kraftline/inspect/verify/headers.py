"""Batch headers against each other, the segment's name and the leader epochs of the partition.

Healthy logs come through a few quick comparisons of whole columns; only where one of them fails
are batches looked at one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import le, lt

from kraftline.inspect.verify.batches import Rows
from kraftline.inspect.verify.findings import LOST, Report
from kraftline.records.batch import HEADER_SIZE
from kraftline.records.record import Codec
from kraftline.records.runs import Run
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.names import MAX_INT, base_offset_of

# The bits that Kafka sets, by magic.
_BITS = (0x07, 0x0F, 0x7F)
_CODEC = 0x07
_TRANSACTIONAL = 0x10
_NO_EPOCH = -1


class LogState:
    """What the walk of a partition carries from one segment to the next.

    From `known_from` on every epoch must be among `epochs`; None where that cannot be said. With
    `may_lag`, one that is newer than all of them is only worth a note: a broker is writing, or was
    killed and finds it in the log when it starts.
    """

    def __init__(
        self,
        epochs: Sequence[EpochStart] = (),
        *,
        known_from: int | None = None,
        may_lag: bool = False,
    ) -> None:
        self.last_offset = -1
        self.epoch = _NO_EPOCH
        self.epoch_starts = [entry.start_offset for entry in epochs]
        self.epochs = [entry.epoch for entry in epochs]
        self.known_from = known_from
        self.may_lag = may_lag
        self.told: set[tuple[int, int | None]] = set()
        # By producer: where its open transaction has its first data, and where its last one ended.
        self.open_transactions: dict[int, int] = {}
        self.ended_transactions: dict[int, int] = {}


class HeaderCheck:
    """Offsets rise, epochs do not fall, attributes are Kafka's; for one segment.

    `contiguous`: the log is never compacted, so that no offset may be missing.
    """

    def __init__(
        self,
        file: str,
        base_offset: int,
        log: LogState,
        report: Report,
        *,
        contiguous: bool = False,
    ) -> None:
        self.file = file
        self.base_offset = base_offset
        self.log = log
        self.report = report
        self.contiguous = contiguous
        # Nothing in this segment may be below its name.
        self.floor = base_offset - 1
        # A renamed file says nothing about its base offset.
        self.overflow = base_offset_of(file) is None
        self.next_position = 0

    def rows(self, rows: Rows) -> None:
        if not rows.positions:
            return
        # Where damage was passed over, offsets are missing of course.
        whole = not rows.untrusted and rows.positions[0] == self.next_position
        self.next_position = rows.positions[-1] + rows.sizes[-1]
        rows = rows.trusted()
        if not rows.positions:
            return
        if self.contiguous and whole:
            self._gaps(rows)
        self._offsets(rows)
        self._epochs(rows)
        self._attributes(rows)

    def records(self, run: Run) -> None:
        """Headers only."""

    def _offsets(self, rows: Rows) -> None:
        base, last = rows.base_offsets, rows.last_offsets
        if base[0] > self.floor and all(map(le, base, last)) and all(map(lt, last, base[1:])):
            self.floor = last[-1]
        else:
            for position, first, end in zip(rows.positions, base, last, strict=True):
                self._offset(position, first, end)
        self.log.last_offset = max(self.log.last_offset, self.floor)
        if last[-1] - self.base_offset > MAX_INT and not self.overflow:
            self.overflow = True
            self.report.add(
                "segment-overflow",
                self.file,
                f"offset {last[-1]} is more than {MAX_INT} above the segment's {self.base_offset}",
                position=rows.positions[-1],
                offset=last[-1],
            )

    def _gaps(self, rows: Rows) -> None:
        due = self.floor + 1
        for n, first in enumerate(rows.base_offsets):
            if first > due:
                self.report.add(
                    "batch-offset",
                    self.file,
                    f"offset {first} where {due} is due: {first - due} offsets are missing",
                    position=rows.positions[n],
                    offset=first,
                    meaning=LOST,
                )
            due = rows.last_offsets[n] + 1

    def _offset(self, position: int, first: int, last: int) -> None:
        problem = None
        if last < first:
            problem = f"the batch ends at offset {last}, before it begins at {first}"
        elif first < self.base_offset:
            problem = f"offset {first} is below the segment's base offset {self.base_offset}"
        elif first <= self.floor:
            problem = f"offset {first} follows offset {self.floor}: offsets must rise"
        if problem is not None:
            self.report.add("batch-offset", self.file, problem, position=position, offset=first)
        self.floor = max(self.floor, last)

    def _epochs(self, rows: Rows) -> None:
        epochs, log = rows.epochs, self.log
        if min(epochs) >= max(log.epoch, 0) and all(map(le, epochs, epochs[1:])):
            log.epoch = epochs[-1]
        else:
            for n, epoch in enumerate(epochs):
                # Old formats, and batches that no leader stamped, have none.
                if _NO_EPOCH < epoch < log.epoch or epoch < _NO_EPOCH:
                    self.report.add(
                        "batch-epoch",
                        self.file,
                        f"leader epoch {epoch} after {log.epoch}: epochs never fall",
                        position=rows.positions[n],
                        offset=rows.base_offsets[n],
                    )
                log.epoch = max(log.epoch, epoch)
        if not log.epochs and log.known_from is None:
            return
        base = rows.base_offsets
        if epochs[0] == epochs[-1] == self._epoch_at(base[0]) == self._epoch_at(base[-1]):
            return  # epochs do not fall, so all in between have this one
        for n, epoch in enumerate(epochs):
            known = self._epoch_at(base[n])
            if known is None and (log.known_from is None or base[n] < log.known_from):
                continue
            if epoch >= 0 and known != epoch:
                self._epoch_differs(epoch, known, rows.positions[n], base[n])

    def _epoch_at(self, offset: int) -> int | None:
        """By leader-epoch-checkpoint; None for what lies before its first entry, which Kafka
        moves up with the log's start."""
        slot = bisect_right(self.log.epoch_starts, offset) - 1
        return self.log.epochs[slot] if slot >= 0 else None

    def _epoch_differs(self, epoch: int, known: int | None, position: int, offset: int) -> None:
        if (epoch, known) in self.log.told:
            return
        self.log.told.add((epoch, known))
        epochs = self.log.epochs
        # Deleting records moves the first entry up at once, and the log's start in its checkpoint
        # some time later: a broker that is killed in between has the records again.
        before_first = known is None and bool(epochs)
        self.report.add(
            "leader-epochs",
            self.file,
            f"the batch has leader epoch {epoch}, leader-epoch-checkpoint says "
            f"{'nothing of it' if known is None else known}",
            position=position,
            offset=offset,
            note=before_first or (self.log.may_lag and epoch > epochs[-1]),
        )

    def _attributes(self, rows: Rows) -> None:
        kinds = set(zip(rows.magics, rows.attributes, strict=True))
        odd = {(magic, bits) for magic, bits in kinds if bits & ~_BITS[magic]}
        transactional = any(bits & _TRANSACTIONAL for magic, bits in kinds if magic == 2)
        unknown = any(bits & _CODEC > Codec.ZSTD for _, bits in kinds)
        if not odd and not transactional and not unknown:
            return
        for n, kind in enumerate(zip(rows.magics, rows.attributes, strict=True)):
            problem = None
            if kind in odd:
                problem = f"attributes {kind[1]:#04x} have bits that format v{kind[0]} does not use"
            elif kind[0] == 2 and kind[1] & _TRANSACTIONAL and rows.producer_ids[n] < 0:
                problem = "a transactional batch without a producer id"
            elif kind[0] == 2 and kind[1] & _CODEC > Codec.ZSTD and rows.sizes[n] == HEADER_SIZE:
                # Others are found out when they are decompressed.
                problem = f"an empty batch of compression codec {kind[1] & _CODEC}: not known"
            if problem is not None:
                self.report.add(
                    "batch-attributes",
                    self.file,
                    problem,
                    position=rows.positions[n],
                    offset=rows.base_offsets[n],
                )
