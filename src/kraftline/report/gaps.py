"""What the data does not cover: gaps in the log, what may not be committed, what was unreadable."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report.tables import micros
from kraftline.report.window import Window

_MOST = 40


class Stretch(Struct, frozen=True):
    """A stretch of the metadata log and how it is known: log, snapshot, gap, unbased."""

    how: str
    from_offset: int
    to_offset: int
    from_time: int | None
    to_time: int | None


class Unread(Struct, frozen=True):
    """What could not be read in one file for one reason."""

    kind: str
    file: str
    reason: str
    places: int


class Gaps(Struct, frozen=True):
    """`uncommitted_from` is the first offset that no snapshot vouches for."""

    stretches: list[Stretch]
    gaps: int
    uncommitted_from: int | None
    last_offset: int | None
    unread: list[Unread]
    unread_left_out: int


def gaps(coverage: pa.Table, quarantine: pa.Table, window: Window) -> Gaps:
    rows = coverage.sort_by("from_offset")
    start, end = micros(rows["from_time"]), micros(rows["to_time"])
    rows = rows.append_column("start", start).append_column("end", end)
    outside = pc.or_(
        pc.fill_null(pc.greater(start, window.end), False),
        pc.fill_null(pc.less(end, window.start), False),
    )
    stretches = [
        Stretch(row["how"], row["from_offset"], row["to_offset"], row["start"], row["end"])
        for row in rows.filter(pc.invert(outside)).to_pylist()
    ]
    committed = pc.max(rows["committed_to"]).as_py()
    last = pc.max(rows["to_offset"]).as_py()
    unread, left_out = _unread(quarantine)
    return Gaps(
        stretches=stretches,
        gaps=sum(each.how in ("gap", "unbased") for each in stretches),
        uncommitted_from=committed if last is not None and committed != last else None,
        last_offset=None if last is None else last - 1,
        unread=unread,
        unread_left_out=left_out,
    )


def _unread(quarantine: pa.Table) -> tuple[list[Unread], int]:
    grouped = (
        quarantine.group_by(["kind", "file", "reason"])
        .aggregate([([], "count_all")])
        .sort_by([("count_all", "descending"), ("file", "ascending")])
    )
    rows = grouped.slice(0, _MOST).to_pylist()
    found = [
        Unread(row["kind"], row["file"], row["reason"] or "", row["count_all"]) for row in rows
    ]
    return found, grouped.num_rows - len(found)
