"""Stretches of time on whole columns, held against counting second by second."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kraftline.report import spans
from kraftline.report.window import SECOND, Window, length
from tests.report.nights import micro, tables, trouble

ENDS = st.integers(0, 40)
SPANS = st.lists(st.tuples(ENDS, st.one_of(st.none(), ENDS)), max_size=30)
WINDOW = Window(micro(5), micro(30), micro(0), micro(40))


def rows(found: list[tuple[int, int | None]]) -> pa.Table:
    given_rows = [trouble("offline", "a-0", start, end) for start, end in found]
    return tables({"health": given_rows})["health"]


@given(SPANS)
def test_the_level_is_the_number_of_spans_at_each_moment(
    found: list[tuple[int, int | None]],
) -> None:
    points = spans.level(spans.within(rows(found), WINDOW), WINDOW)
    for second in range(5, 30):
        true_then = sum(start <= second and (end is None or end > second) for start, end in found)
        level = 0
        for at, count in points:
            if at <= micro(second):
                level = count
        assert level == true_then


@given(SPANS)
def test_episodes_are_what_touches(found: list[tuple[int, int | None]]) -> None:
    told = spans.episodes(spans.within(rows(found), WINDOW)).to_pylist()
    for before, after in itertools.pairwise(told):
        reach = max(each["end"] for each in told if each["start"] <= before["start"])
        reach = max(reach, before["end"])
        assert (after["episode"] > before["episode"]) == (after["start"] > reach)


def test_a_curve_of_many_steps_keeps_its_peaks() -> None:
    window = Window(0, 10_000 * SECOND, 0, 10_000 * SECOND)
    starts = [second * SECOND for second in range(10_000)]
    table = pa.table(
        {
            "start": [*starts, 777 * SECOND],
            "end": [*(start + SECOND // 2 for start in starts), 777 * SECOND + 1000],
            "ongoing": [False] * 10_001,
        }
    )
    points = spans.level(table, window)
    assert len(points) < 1000
    assert max(count for _, count in points) == 2
    assert points == sorted(points, key=lambda point: point[0])
    assert points[-1][1] == 0


def test_spans_too_close_to_tell_apart_are_one() -> None:
    assert spans.joined([(0, 10), (12, 20), (40, 50)], 5) == [(0, 20), (40, 50)]


def test_lengths_are_said_in_two_units() -> None:
    said = {
        0: "0 s",
        900: "1 ms",
        1_500_000: "1.5 s",
        2_000_000: "2 s",
        61_000_000: "1 min 1 s",
        3_600_000_000: "1 h",
        90_061_000_000: "1 d 1 h",
    }
    assert {micros: length(micros) for micros in said} == said
