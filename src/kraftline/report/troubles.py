"""Partitions that were not well: how many and when, which were worst, and what still is wrong."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.inspect.cluster.health import (
    OFFLINE,
    REASSIGNING,
    RECOVERING_STATE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
)
from kraftline.report import spans
from kraftline.report.window import Window

# Those of partitions that are told of, the worst first; brokers have rows of their own.
KINDS = (OFFLINE, UNDER_MIN_ISR, RECOVERING_STATE, UNDER_REPLICATED, REASSIGNING)
# Counted over time.
CURVES = (UNDER_REPLICATED, UNDER_MIN_ISR, OFFLINE)
_WEIGHT = {
    OFFLINE: 1000,
    UNDER_MIN_ISR: 100,
    RECOVERING_STATE: 10,
    UNDER_REPLICATED: 10,
    REASSIGNING: 1,
}
_MOST_LANES = 20
_FINEST = 250
_MOST_EPISODES = 200
_NAMES = 50


class Episode(Struct, frozen=True):
    """A time in which partitions had one trouble, one or other of them without a break.

    `names` are some of them; `longest` is how long the worst one had it.
    """

    kind: str
    start: int
    end: int
    ongoing: bool
    partitions: int
    topics: int
    longest: int
    names: list[str]

    @property
    def length(self) -> int:
        return self.end - self.start


class Lane(Struct, frozen=True):
    """One partition: when it had which trouble, and for how long in all."""

    name: str
    stretches: dict[str, list[tuple[int, int]]]
    lasted: dict[str, int]


class Troubles(Struct, frozen=True):
    """`episodes` by kind, the longest first; of `more` the report says only the number.

    `at_end` counts partitions by kind of trouble at the end of the window.
    """

    episodes: dict[str, list[Episode]]
    more: dict[str, int]
    curves: dict[str, list[tuple[int, int]]]
    lanes: list[Lane]
    lanes_left_out: int
    at_end: dict[str, int]


def troubles(health: pa.Table, window: Window) -> Troubles:
    rows = spans.within(health, window)
    rows = rows.filter(pc.is_valid(rows["partition"]))
    name = pc.binary_join_element_wise(rows["topic"], pc.cast(rows["partition"], pa.string()), "-")
    rows = rows.append_column("at", name).append_column(
        "lasted", pc.subtract(rows["end"], rows["start"])
    )
    by_kind = {kind: rows.filter(pc.equal(rows["kind"], kind)) for kind in KINDS}
    by_kind[UNDER_MIN_ISR] = _not_told(by_kind[UNDER_MIN_ISR], by_kind[OFFLINE])
    found = {kind: _episodes(kind, by_kind[kind]) for kind in KINDS if by_kind[kind].num_rows}
    lanes, left_out = _lanes(rows, window)
    return Troubles(
        episodes={kind: told for kind, (told, _) in found.items()},
        more={kind: more for kind, (_, more) in found.items() if more},
        curves={kind: spans.level(by_kind[kind], window) for kind in CURVES},
        lanes=lanes,
        lanes_left_out=left_out,
        at_end={
            kind: ongoing for kind in KINDS if (ongoing := pc.sum(by_kind[kind]["ongoing"]).as_py())
        },
    )


def _not_told(short: pa.Table, offline: pa.Table) -> pa.Table:
    """Without those that lacked replicas because they had none: that they were offline says it."""
    ends = offline.group_by(["at", "start"]).aggregate([("end", "max")])
    both = short.select(["at", "start", "end", "ongoing", "topic", "lasted"]).join(
        ends, ["at", "start"], join_type="left outer"
    )
    return both.filter(pc.less(pc.fill_null(both["end_max"], -1), both["end"]))


def _episodes(kind: str, rows: pa.Table) -> tuple[list[Episode], int]:
    """The longest ones, longest first, and how many there are besides."""
    rows = spans.episodes(rows)
    grouped = rows.group_by("episode").aggregate(
        [
            ("start", "min"),
            ("end", "max"),
            ("ongoing", "any"),
            ("at", "count_distinct"),
            ("topic", "count_distinct"),
            ("lasted", "max"),
        ]
    )
    length = pc.subtract(grouped["end_max"], grouped["start_min"])
    grouped = grouped.append_column("length", length)
    kept = grouped.sort_by([("length", "descending"), ("start_min", "ascending")])
    told = kept.slice(0, _MOST_EPISODES).to_pylist()
    names = _names(rows, [row["episode"] for row in told])
    return [
        Episode(
            kind=kind,
            start=row["start_min"],
            end=row["end_max"],
            ongoing=row["ongoing_any"],
            partitions=row["at_count_distinct"],
            topics=row["topic_count_distinct"],
            longest=row["lasted_max"],
            names=names[row["episode"]],
        )
        for row in told
    ], kept.num_rows - len(told)


def _names(rows: pa.Table, wanted: list[int]) -> dict[int, list[str]]:
    """Some partitions of each episode, those that had it longest first."""
    rows = rows.filter(pc.is_in(rows["episode"], pa.array(wanted, pa.int64())))
    longest = (
        rows.group_by(["episode", "at"])
        .aggregate([("lasted", "sum")])
        .sort_by([("lasted_sum", "descending"), ("at", "ascending")])
    )
    out: dict[int, list[str]] = {}
    for number in wanted:
        mine = longest.filter(pc.equal(longest["episode"], number))
        out[number] = mine["at"].slice(0, _NAMES).to_pylist()
    return out


def _lanes(rows: pa.Table, window: Window) -> tuple[list[Lane], int]:
    """The partitions that were worst off, and how many there are besides."""
    rows = rows.filter(pc.is_in(rows["kind"], pa.array(KINDS)))
    sums = rows.group_by(["at", "kind"]).aggregate([("lasted", "sum")])
    weights = pc.index_in(sums["kind"], pa.array(list(_WEIGHT)))
    factor = pc.take(pa.array(_WEIGHT.values(), pa.float64()), weights.combine_chunks())
    sums = sums.append_column("score", pc.multiply(pc.cast(sums["lasted_sum"], "double"), factor))
    ranked = (
        sums.group_by("at")
        .aggregate([("score", "sum")])
        .sort_by([("score_sum", "descending"), ("at", "ascending")])
    )
    worst = ranked["at"].slice(0, _MOST_LANES).to_pylist()
    mine = rows.filter(pc.is_in(rows["at"], pa.array(worst, pa.string()))).sort_by("start")
    gap = window.length // _FINEST
    lanes = []
    for name in worst:
        stretches: dict[str, list[tuple[int, int]]] = {}
        for row in mine.filter(pc.equal(mine["at"], name)).to_pylist():
            stretches.setdefault(row["kind"], []).append((row["start"], row["end"]))
        lasted = {kind: sum(end - start for start, end in them) for kind, them in stretches.items()}
        drawn = {
            kind: spans.joined(them, gap if len(them) > _FINEST else 0)
            for kind, them in stretches.items()
        }
        lanes.append(Lane(name, drawn, lasted))
    return lanes, ranked.num_rows - len(worst)
