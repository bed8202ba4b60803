"""Metadata snapshots: a header first, a footer last, offsets from 0, one epoch, and its name."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kraftline.inspect.verify.batches import Rows, walk
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.headers import HeaderCheck, LogState
from kraftline.inspect.verify.payloads import check_metadata
from kraftline.inspect.verify.records import RecordCheck
from kraftline.records.runs import Run
from kraftline.schema.control.frame import ControlType
from kraftline.schema.types import Message
from kraftline.storage.names import SnapshotId, parse_snapshot
from kraftline.storage.segment import TailKind

_CONTROL = 0x20


class _SnapshotCheck:
    """Where header and footer stand, and that offsets have no gap. Epochs only where the file's
    name says one: bootstrap.checkpoint has none."""

    def __init__(self, file: str, id: SnapshotId | None, report: Report) -> None:
        self.file = file
        self.id = id
        self.report = report
        self.next_offset = 0
        self.headers: list[int] = []
        self.footers: list[int] = []
        self.told_epoch = False

    def rows(self, rows: Rows) -> None:
        trusted = rows.trusted()
        for n, (first, last) in enumerate(
            zip(trusted.base_offsets, trusted.last_offsets, strict=True)
        ):
            epoch, position = trusted.epochs[n], trusted.positions[n]
            if first > self.next_offset and not rows.untrusted:
                self.report.add(
                    "snapshot-offset",
                    self.file,
                    f"offset {first} where {self.next_offset} is due: a snapshot has no gaps",
                    position=position,
                    offset=first,
                )
            self.next_offset = max(self.next_offset, last + 1)
            if self.id is not None and epoch != self.id.epoch and not self.told_epoch:
                self.told_epoch = True
                self.report.add(
                    "snapshot-epoch",
                    self.file,
                    f"a batch has leader epoch {epoch}, the file's name says {self.id.epoch}",
                    position=position,
                    offset=first,
                )

    def records(self, run: Run) -> None:
        """Control records come through `control`."""

    def control(self, offset: int, producer_id: int, kind: int, message: Message | None) -> None:
        if kind == ControlType.SNAPSHOT_HEADER:
            self.headers.append(offset)
        elif kind == ControlType.SNAPSHOT_FOOTER:
            self.footers.append(offset)

    def finish(self) -> None:
        last = self.next_offset - 1
        self._one("snapshot-header", "header", self.headers, 0, "the first")
        self._one("snapshot-footer", "footer", self.footers, last, "the last")

    def _one(self, code: str, what: str, found: Sequence[int], due: int, place: str) -> None:
        problem = None
        if not found:
            problem = f"there is no snapshot {what}"
        elif len(found) > 1:
            problem = f"there are {len(found)} snapshot {what}s, at offsets {found[:5]}"
        elif found[0] != due:
            problem = f"the snapshot {what} is at offset {found[0]}, not {place} record ({due})"
        if problem is not None:
            self.report.add(code, self.file, problem, offset=found[0] if found else None)


def verify_snapshot(path: str, report: Report) -> None:
    """Check a `.checkpoint` file, bootstrap.checkpoint included."""
    name = parse_snapshot(os.path.basename(path))
    check = _SnapshotCheck(path, None if name is None else name.id, report)
    checks = (
        HeaderCheck(path, 0, LogState(), report),
        check,
        RecordCheck(path, report, typed=check_metadata, one_time=True, on_control=check.control),
    )
    walked = walk(path, report, checks)
    if walked is None:
        return
    if walked.tail is not None and walked.tail.kind is not TailKind.COMPLETE:
        report.add(
            "tail-partial",
            path,
            f"the file ends within a batch ({walked.tail.length:,} bytes)",
            position=walked.tail.position,
            meaning="The snapshot is cut: a KRaft node refuses it. Kafka never leaves one so.",
        )
    check.finish()
