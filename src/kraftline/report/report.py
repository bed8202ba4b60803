"""From a lake to a page: reads the tables of each cluster, and tells of the one that was worst."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from kraftline.lake.coverage import NoAnswer
from kraftline.lake.lake import Lake
from kraftline.lake.tables import TABLES
from kraftline.report.findings import Findings, find
from kraftline.report.page import Made, Member, Silent, empty_page, page
from kraftline.report.summary import LEVELS, Summary, summary
from kraftline.report.tables import NEEDED, Tables, columns_of, typed
from kraftline.report.window import Clock, Window, window_of


class Report(Struct, frozen=True):
    """What is `said` is of one `cluster` of so many, None where there is nothing to tell; of the
    `silent` ones nothing is known."""

    html: str
    said: Summary | None
    silent: list[Silent]
    cluster: str | None = None
    clusters: int = 0


def report(
    lake: Lake, *, cluster: str | None = None, start: int | None = None, end: int | None = None
) -> Report:
    """One page; `start` and `end` in microseconds. NoAnswer: no such cluster or time."""
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
        made = _made(lake, names)
        return Report(empty_page(lake.root, made), None, made.silent)
    told.sort(key=lambda each: (LEVELS.index(each[1].level), LEVELS.index(each[1].now_level)))
    shown, said = told[0]
    fleet = [Member(found.cluster, words, found is shown) for found, words in told]
    made = _made(lake, [name for name in names if name not in {each.cluster for each in fleet}])
    html = page(shown, said, fleet, made)
    return Report(html, said, made.silent, shown.cluster, len(fleet))


def clusters(lake: Lake) -> list[str]:
    """By name; also those whose files told nothing."""
    found = lake.query("SELECT DISTINCT cluster_id FROM coverage", "coverage")
    return sorted({*found["cluster_id"].to_pylist(), *lake.build.clusters})


def tables_of(lake: Lake, cluster: str) -> Tables:
    """The rows and columns that a report on one cluster needs."""
    quoted = cluster.replace("'", "''")
    return {
        name: typed(name, lake.dataset(name, f"cluster_id = '{quoted}'", columns_of(name)))
        if name in lake.build.versions
        else TABLES[name].columns.empty_table()
        for name in NEEDED
    }


def _made(lake: Lake, silent: list[str]) -> Made:
    unread: dict[str, int] = {}
    if silent and "quarantine" in lake.build.versions:
        places = lake.query(
            "SELECT cluster_id, count(*) AS places FROM quarantine GROUP BY cluster_id",
            "quarantine",
        )
        unread = {row["cluster_id"]: row["places"] for row in places.to_pylist()}
    told = [Silent(name, unread.get(name, 0)) for name in silent]
    return Made(lake.root, datetime.now(UTC), told)


def _found(lake: Lake, cluster: str, start: int | None, end: int | None) -> Findings | None:
    """None where nothing is known of that time."""
    tables = tables_of(lake, cluster)
    window = window_of(tables, start, end)
    return None if window is None else find(cluster, tables, window)


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
