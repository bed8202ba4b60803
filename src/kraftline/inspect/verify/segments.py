"""One segment with its indexes: walked together, then how the file ends."""

from __future__ import annotations

import os

import msgspec

from kraftline.inspect.verify.batches import Check, Walked, walk
from kraftline.inspect.verify.findings import LOST, Report
from kraftline.inspect.verify.headers import HeaderCheck, LogState
from kraftline.inspect.verify.indexes import (
    IndexPlace,
    OffsetIndexCheck,
    TimeIndexCheck,
    open_offset_index,
    open_time_index,
)
from kraftline.inspect.verify.payloads import payload_check
from kraftline.inspect.verify.records import RecordCheck
from kraftline.inspect.verify.transactions import TransactionCheck
from kraftline.storage.names import METADATA_TOPIC, FileKind
from kraftline.storage.partition_dir import Segment
from kraftline.storage.segment import TailKind


class Surroundings(msgspec.Struct, frozen=True):
    """What is known of a log around its segments.

    `clean`: the broker stopped cleanly, so nothing is half-written or preallocated.
    """

    topic: str | None = None
    clean: bool = False


def verify_segment(
    segment: Segment,
    around: Surroundings,
    log: LogState,
    report: Report,
    *,
    newest: bool,
    following: Segment | None = None,
    only: FileKind | None = None,
) -> Walked | None:
    """Check a segment and its indexes; None where it cannot be read or has vanished.

    `only` names the one index that is asked about; the others are left alone.
    """
    path = segment.path
    unfinished = newest and not around.clean
    before = _identity(path)
    held, waiting = report.held()
    places = {
        companion.kind: IndexPlace(companion.path, unfinished, unfinished)
        for companion in segment.companions
        if not report.first and only in (None, companion.kind)
    }
    indexes = _indexes(places, held)
    # A segment that was copied without its indexes is not missing one.
    judged = bool(places) and only in (None, FileKind.TXN_INDEX)
    transactions = TransactionCheck(path, places.get(FileKind.TXN_INDEX), log, held, judged=judged)
    metadata = around.topic == METADATA_TOPIC
    checks: list[Check] = [
        HeaderCheck(path, segment.base_offset, log, report, contiguous=metadata),
        *indexes,
        transactions,
        RecordCheck(
            path,
            report,
            typed=payload_check(around.topic),
            one_time=metadata,
            on_control=transactions.control,
        ),
    ]
    known = report.findings
    walked = walk(path, report, checks)
    if walked is None:
        return None
    damaged = report.findings > known
    for check in (*indexes, transactions):
        check.finish(walked)
    if _identity(path) == before:
        report.pass_on(*waiting)
    elif waiting:
        report.note("unreadable", path, "changed while it was read: its indexes were not judged")
    verify_tail(path, walked, report, unfinished=unfinished)
    if walked.next_offset is not None and following is not None:
        _overlap(path, walked.next_offset - 1, following, report)
    if metadata and following is not None and not damaged:
        _gap(segment, walked, following, report)
    return walked


def _overlap(path: str, last_offset: int, following: Segment, report: Report) -> None:
    if last_offset < following.base_offset:
        return
    # Compaction joins segments: once the joined one is there, those that it replaces are gone.
    if _identity(following.path) is not None:
        report.add(
            "batch-offset",
            path,
            f"the last offset is {last_offset}, but the next segment begins at "
            f"{following.base_offset}",
            offset=last_offset,
        )


def _gap(segment: Segment, walked: Walked, following: Segment, report: Report) -> None:
    """Between two segments of the metadata log. Where the first breaks off, that was told."""
    if walked.tail is not None and walked.tail.kind is not TailKind.COMPLETE:
        return
    due = segment.base_offset if walked.next_offset is None else walked.next_offset
    if due < following.base_offset:
        report.add(
            "batch-offset",
            following.path,
            f"the segment begins at offset {following.base_offset} where {due} is due: "
            f"{following.base_offset - due} offsets are missing",
            offset=due,
            meaning=LOST,
        )


def verify_tail(path: str, walked: Walked, report: Report, *, unfinished: bool) -> None:
    """Half a batch at the end is normal only where a broker may still be writing."""
    tail = walked.tail
    if tail is None or tail.kind is TailKind.COMPLETE:
        return
    if tail.kind is TailKind.ZEROS:
        if not unfinished:
            report.add(
                "tail-zeros",
                path,
                f"{tail.length:,} bytes of zeros follow the last batch",
                position=tail.position,
                offset=walked.next_offset,
            )
    elif unfinished:
        report.note(
            "tail-partial",
            path,
            f"the last batch is not there yet: {tail.length:,} bytes of it "
            "(a running broker is writing it, or a crash cut it; Kafka drops it then)",
            position=tail.position,
        )
    else:
        report.add(
            "tail-partial",
            path,
            f"the file ends within a batch: {tail.length:,} bytes of it are there",
            position=tail.position,
            offset=walked.next_offset,
            data=_bytes_at(path, tail.position),
        )


def _indexes(
    places: dict[FileKind, IndexPlace], report: Report
) -> list[OffsetIndexCheck | TimeIndexCheck]:
    found: list[OffsetIndexCheck | TimeIndexCheck] = []
    if FileKind.OFFSET_INDEX in places:
        offsets = open_offset_index(places[FileKind.OFFSET_INDEX], report)
        found += [offsets] if offsets is not None else []
    if FileKind.TIME_INDEX in places:
        times = open_time_index(places[FileKind.TIME_INDEX], report)
        found += [times] if times is not None else []
    return found


def _identity(path: str) -> int | None:
    """Compaction puts another file under the same name."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _bytes_at(path: str, position: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(position)
            return file.read(64)
    except OSError:
        return b""
