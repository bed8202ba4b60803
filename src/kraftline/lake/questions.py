"""What people ask a lake, answered without a JVM: rows as pyarrow Tables.

`spark.questions.History` gives the same answers as DataFrames: both run the SQL of `queries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from kraftline.lake import queries
from kraftline.lake.columns import is_time, millis
from kraftline.lake.coverage import NoAnswer, Standing, Window, read_coverage
from kraftline.lake.lake import Lake
from kraftline.lake.queries import EVERYTHING, Chosen
from kraftline.lake.tables import HISTORY, TABLES, Table

_MOST_IDS = 1000  # beyond these, a list of ids skips little


def as_of(lake: Lake, table: str, standing: Standing, chosen: Chosen = EVERYTHING) -> pa.Table:
    """A history table's rows that were true at a moment (`coverage.stand` finds it)."""
    found = _table(table)
    return lake.query(queries.as_of(found, standing, _with_ids(lake, found, chosen)), table)


def whole(
    lake: Lake, table: str, clusters: Sequence[str] = (), chosen: Chosen = EVERYTHING
) -> pa.Table:
    """A table that has no moments, as it is: `quarantine`, say."""
    read_coverage(lake, clusters)  # which says so where there is no such cluster
    return lake.query(queries.whole(_table(table), clusters, chosen), table)


def difference(
    lake: Lake, table: str, before: Standing, after: Standing, chosen: Chosen = EVERYTHING
) -> pa.Table:
    """What is different in a history table between two moments, a row per entity."""
    found = _table(table)
    if found not in HISTORY:
        names = ", ".join(each.name for each in HISTORY)
        raise NoAnswer(f"{table} has no difference; there are {names}")
    chosen = _with_ids(lake, found, chosen)
    return lake.query(queries.difference(found, before, after, chosen), table)


def changes(lake: Lake, window: Window, chosen: Chosen = EVERYTHING) -> pa.Table:
    """What happened in a window (`coverage.window` makes one), as rows of `changes`."""
    return lake.query(queries.changes(window, chosen), "changes")


def health(lake: Lake, window: Window, chosen: Chosen = EVERYTHING) -> pa.Table:
    """What was wrong at any time of a window, as rows of `health`."""
    return lake.query(queries.health(window, chosen), "health")


def timeline(lake: Lake, topic: str, clusters: Sequence[str] = ()) -> pa.Table:
    """All that happened to a topic: its changes, and what was wrong from when to when."""
    read_coverage(lake, clusters)
    return lake.query(queries.timeline(topic, clusters), "changes", "health")


def never_seen(lake: Lake, table: str, chosen: Chosen) -> list[str]:
    """Of a choice, what no row of a table ever had: where an answer is empty, most likely somebody
    mistyped it."""
    found = _table(table)
    each_alone = [
        *((f"topic {each}", Chosen(topics=(each,))) for each in chosen.topics),
        *((f"broker {each}", Chosen(brokers=(each,))) for each in chosen.brokers),
        *((f"kind {each}", Chosen(kinds=(each,))) for each in chosen.kinds),
    ]
    said = []
    for what, alone in each_alone:
        if not lake.query(queries.any_row(found, alone), table).num_rows:
            there = ""
            if alone.kinds:
                kinds = lake.query(queries.kinds_in(found), table)["kind"].to_pylist()
                there = f"; there are: {', '.join(kinds) or 'none'}"
            said.append(f"{table} has nothing of {what}, at any time{there}")
    return said


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows for programs: times as ISO-8601 in UTC, to the millisecond."""
    times = [field.name for field in table.schema if is_time(field)]
    rows: list[dict[str, Any]] = table.drop_columns(times).to_pylist(maps_as_pydicts="strict")
    told = {
        name: [None if each is None else iso_time(each) for each in millis(table[name])]
        for name in times
    }
    order = table.column_names
    return [
        {name: told[name][at] if name in told else row[name] for name in order}
        for at, row in enumerate(rows)
    ]


def iso_time(ms: int) -> str:
    when = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _table(name: str) -> Table:
    if name not in TABLES:
        raise NoAnswer(f"there is no table {name}; there are {', '.join(TABLES)}")
    return TABLES[name]


def _with_ids(lake: Lake, table: Table, chosen: Chosen) -> Chosen:
    """The ids of chosen topics, where they help: large tables are in the order of those."""
    if not chosen.topics or "topic_id" not in table.columns.names or table.name == "topics":
        return chosen
    found = lake.query(queries.topic_ids(chosen.topics), "topics")["topic_id"].to_pylist()
    if not 0 < len(found) <= _MOST_IDS:
        return chosen
    return msgspec.structs.replace(chosen, topic_ids=tuple(sorted(found)))
