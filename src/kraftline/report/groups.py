"""Consumer groups that lag: how far behind they were, and where they stand at the end."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report import spans
from kraftline.report.tables import micros
from kraftline.report.window import Window

_MOST = 8


class Lag(Struct, frozen=True):
    """A group: `curve` is (moment, records behind) as far as commits tell.

    `behind` is how far it is from the end of the topics' segments; None where there are none.
    """

    group: str
    partitions: int
    topics: list[str]
    last_commit: int
    highest: int
    behind: int | None
    curve: list[tuple[int, int]]


class Groups(Struct, frozen=True):
    lagging: list[Lag]
    left_out: int
    total: int


def groups(offsets: pa.Table, sizes: pa.Table, window: Window) -> Groups:
    rows = spans.within(offsets, window)
    names = _ranked(rows, sizes)
    lagging = [
        _lag(rows.filter(pc.equal(rows["group"], name)), name, sizes, window)
        for name in names[:_MOST]
    ]
    return Groups(lagging, max(0, len(names) - _MOST), len(names))


def _ranked(rows: pa.Table, sizes: pa.Table) -> list[str]:
    """All groups, those first that are, or were at their worst, furthest behind."""
    behind = _with_ends(rows, sizes).group_by("group").aggregate([("behind", "sum")])
    highest = rows.group_by("group").aggregate([("lag", "max")])
    both = highest.join(behind, "group", join_type="left outer")
    score = pc.max_element_wise(
        pc.fill_null(both["behind_sum"], 0), pc.fill_null(both["lag_max"], 0)
    )
    ranked = both.append_column("score", score).sort_by(
        [("score", "descending"), ("group", "ascending")]
    )
    found: list[str] = ranked["group"].to_pylist()
    return found


def _with_ends(rows: pa.Table, sizes: pa.Table) -> pa.Table:
    """Offsets that stand at the end of the window, with `behind`: how far the log goes on."""
    ends = sizes.group_by(["topic", "partition"]).aggregate([("end_offset", "max")])
    now = rows.filter(rows["ongoing"]).select(["group", "topic", "partition", "committed_offset"])
    now = now.join(ends, ["topic", "partition"], join_type="inner")
    behind = pc.subtract(now["end_offset_max"], now["committed_offset"])
    return now.append_column("behind", pc.max_element_wise(behind, 0))


def _lag(rows: pa.Table, name: str, sizes: pa.Table, window: Window) -> Lag:
    known = rows.filter(pc.is_valid(rows["lag"]))
    curve = spans.level(known, window, "lag")
    ends = _with_ends(rows, sizes)
    # What segments hold now says nothing of a window that ended earlier.
    is_now = window.end >= window.known_to and ends.num_rows
    behind = pc.sum(ends["behind"]).as_py() if is_now else None
    return Lag(
        group=name,
        partitions=rows.select(["topic", "partition"])
        .group_by(["topic", "partition"])
        .aggregate([])
        .num_rows,
        topics=sorted(pc.unique(rows["topic"]).to_pylist()),
        last_commit=pc.max(micros(rows["commit_time"])).as_py() or window.start,
        highest=max([behind or 0, *(lag for _, lag in curve)]),
        behind=behind,
        curve=curve,
    )
