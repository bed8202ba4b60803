"""From a lake to a page: reads the tables of each cluster, and tells of the one that was worst."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from kraftline.lake.coverage import NoAnswer
from kraftline.lake.lake import Lake
from kraftline.lake.tables import TABLES
from kraftline.report.findings import Findings, find
from kraftline.report.page import Made, Member, empty_page, page
from kraftline.report.summary import LEVELS, Summary, summary
from kraftline.report.tables import NEEDED, Tables, columns_of, typed
from kraftline.report.window import Clock, Window, window_of


class Report(Struct, frozen=True):
    """`said` is None where there is nothing to tell."""

    html: str
    said: Summary | None


def report(
    lake: Lake, *, cluster: str | None = None, start: int | None = None, end: int | None = None
) -> Report:
    """One page; `start` and `end` in microseconds. NoAnswer: no such cluster or time."""
    made = Made(lake.root, datetime.now(UTC))
    names = clusters(lake)
    if cluster is not None:
        if cluster not in names:
            there = ", ".join(names) or "none"
            raise NoAnswer(f"{lake.root}: has no cluster {cluster}; there are: {there}")
        names = [cluster]
    told = [(found, summary(found)) for name in names if (found := _found(lake, name, start, end))]
    if not told:
        if start is not None or end is not None:
            raise NoAnswer(_outside(lake, names))
        return Report(empty_page(lake.root, made), None)
    told.sort(key=lambda each: (LEVELS.index(each[1].level), LEVELS.index(each[1].now_level)))
    shown, said = told[0]
    fleet = [Member(found.cluster, words, found is shown) for found, words in told]
    return Report(page(shown, said, fleet, made), said)


def clusters(lake: Lake) -> list[str]:
    """By name."""
    found = lake.query("SELECT DISTINCT cluster_id FROM coverage", "coverage")
    return sorted(found["cluster_id"].to_pylist())


def tables_of(lake: Lake, cluster: str) -> Tables:
    """The rows and columns that a report on one cluster needs."""
    quoted = cluster.replace("'", "''")
    return {
        name: typed(name, lake.dataset(name, f"cluster_id = '{quoted}'", columns_of(name)))
        if name in lake.build.versions
        else TABLES[name].columns.empty_table()
        for name in NEEDED
    }


def _found(lake: Lake, cluster: str, start: int | None, end: int | None) -> Findings | None:
    """None where nothing is known of that time."""
    tables = tables_of(lake, cluster)
    window = window_of(tables, start, end)
    if window is None or window.start > window.known_to or window.end < window.known_from:
        return None
    return find(cluster, tables, window)


def _outside(lake: Lake, names: list[str]) -> str:
    known = [window_of(tables_of(lake, name), None, None) for name in names]
    told = [window for window in known if window is not None]
    if not told:
        return f"{lake.root}: tells of no time at all"
    first = min(window.known_from for window in told)
    last = max(window.known_to for window in told)
    clock = Clock(Window(first, last, first, last))
    return (
        f"{lake.root}: nothing is known of that time; "
        f"there is data from {clock.full(first)} to {clock.full(last)} UTC"
    )
