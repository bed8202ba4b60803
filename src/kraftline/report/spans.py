"""Arithmetic on stretches of time, on whole columns: a lake may have millions of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from kraftline.report.tables import micros
from kraftline.report.window import Window

# A curve is drawn from at most so many points.
_POINTS = 900
_NEVER = 2**62


def within(table: pa.Table, window: Window) -> pa.Table:
    """The rows that were true for some time of the window.

    `start` and `end` are cut to it; `ongoing` rows were true at its end still.
    """
    begin = micros(table["valid_from_time"])
    finish = pc.fill_null(micros(table["valid_to_time"]), _NEVER)
    spans = (
        table.drop_columns(["valid_from_time", "valid_to_time"])
        .append_column("start", pc.max_element_wise(begin, window.start))
        .append_column("end", pc.min_element_wise(finish, window.end))
        .append_column("ongoing", pc.greater(finish, window.end))
    )
    true_then = pc.and_(pc.less_equal(begin, window.end), pc.greater(finish, window.start))
    return spans.filter(pc.and_(true_then, pc.greater(finish, begin)))


def episodes(spans: pa.Table) -> pa.Table:
    """By start, with `episode`: spans that touch one another in time are of one."""
    spans = spans.sort_by("start").combine_chunks()
    if not spans.num_rows:
        return spans.append_column("episode", pa.array([], pa.int64()))
    reach = pc.cumulative_max(spans["end"])
    before = pa.concat_arrays([pa.array([-1], pa.int64()), *reach.slice(0, len(reach) - 1).chunks])
    is_new = pc.greater(spans["start"], before)
    return spans.append_column("episode", pc.cumulative_sum(pc.cast(is_new, pa.int64())))


def level(spans: pa.Table, window: Window, weight: str | None = None) -> list[tuple[int, int]]:
    """How many spans there were at once (or the sum of a column), as (moment, new level).

    Where that has too many steps, the highest level of each short interval.
    """
    by = spans[weight] if weight else pa.chunked_array([pa.repeat(1, spans.num_rows)], pa.int64())
    ended = spans.filter(pc.invert(spans["ongoing"]))
    less = by.filter(pc.invert(spans["ongoing"]))
    steps = pa.table(
        {
            "at": pa.chunked_array([*spans["start"].chunks, *ended["end"].chunks], pa.int64()),
            "by": pa.chunked_array([*by.chunks, *pc.negate(less).chunks], pa.int64()),
        }
    )
    if not steps.num_rows:
        return []
    steps = steps.group_by("at").aggregate([("by", "sum")]).sort_by("at")
    levels = pc.cumulative_sum(steps["by_sum"])
    times = steps["at"]
    if len(times) > _POINTS:
        return _highest(times, levels, window)
    points = list(zip(times.to_pylist(), levels.to_pylist(), strict=True))
    return points if points[0][0] <= window.start else [(window.start, 0), *points]


def _highest(
    times: pa.ChunkedArray, levels: pa.ChunkedArray, window: Window
) -> list[tuple[int, int]]:
    """For each interval in which something happened: its highest level, then its last."""
    width = max(1, window.length // (_POINTS // 2))
    slot = pc.divide(pc.subtract(times, window.start), width)
    found = (
        pa.table({"slot": slot, "level": levels})
        .group_by("slot", use_threads=False)  # "last" is that of the rows' order
        .aggregate([("level", "max"), ("level", "last")])
        .sort_by("slot")
        .to_pydict()
    )
    points = [(window.start, 0)]
    for at, highest, last in zip(
        found["slot"], found["level_max"], found["level_last"], strict=True
    ):
        begins = window.start + at * width
        points += [(begins, highest), (min(begins + width, window.end), last)]
    return points


def joined(spans: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Spans in order of start, those closer than `gap` as one: a picture cannot tell them apart."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and start - out[-1][1] <= gap:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
