"""A month of a large and restless cluster: the page stays small, and nothing is left out unsaid."""

from __future__ import annotations

import random

import pyarrow as pa

from kraftline.lake.tables import TABLES
from kraftline.report.tables import NEEDED, Tables
from tests.effort import rounds
from tests.report.nights import THREE
from tests.report.telling import found_in, html_of, said_of

ROWS = rounds(100_000)  # a million in a soak
MONTH = 30 * 24 * 3600 * 1_000_000
FIRST = round(THREE.timestamp() * 1_000_000)


def columns(name: str, given: dict[str, list[object]]) -> pa.Table:
    """A table from whole columns; those not given are null."""
    schema, rows = TABLES[name].columns, len(next(iter(given.values())))
    return pa.table(
        [
            pa.array(given[field.name]).cast(field.type)
            if field.name in given
            else pa.nulls(rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def restless() -> Tables:
    draw = random.Random(3)
    times = sorted(FIRST + draw.randrange(MONTH) for _ in range(ROWS))
    subjects = [draw.randrange(20_000) for _ in range(ROWS)]
    topics: list[object] = [f"topic-{each // 10}" for each in subjects]
    kinds = draw.choices(
        ("isr.shrank", "isr.grew", "leader.moved", "leader.lost", "config.set", "topic.deleted"),
        (40, 40, 15, 2, 2, 1),
        k=ROWS,
    )
    troubles = draw.choices(
        ("under-replicated", "offline", "under min ISR", "reassigning"), (70, 5, 10, 15), k=ROWS
    )
    given = {
        "changes": columns(
            "changes",
            {
                "offset": list(range(ROWS)),
                "time": list(times),
                "kind": list(kinds),
                "subject": [f"topic-{each // 10}-{each % 10}" for each in subjects],
                "cause": [f"broker {each % 50} was fenced" for each in subjects],
                "text": [f"something happened to topic-{each // 10}" for each in subjects],
                "committed": [True] * ROWS,
            },
        ),
        "health": columns(
            "health",
            {
                "kind": list(troubles),
                "topic": topics,
                "partition": [each % 10 for each in subjects],
                "valid_from_offset": list(range(ROWS)),
                "valid_from_time": list(times),
                "valid_to_time": [time + draw.randrange(60_000_000) for time in times],
            },
        ),
    }
    return {name: given.get(name, TABLES[name].columns.empty_table()) for name in NEEDED}


def test_the_page_stays_small_and_says_what_it_leaves_out() -> None:
    night = restless()
    html = html_of(night)
    assert len(html.encode()) < 4_000_000
    found = found_in(night)
    assert found.changes.total == ROWS
    assert len(found.changes.lines) == 1200
    assert f"{ROWS - found.changes.told:,} changes of less weight left out" in " ".join(
        html.split()
    )
    assert len(found.troubles.lanes) == 20
    assert f"(20 of {20 + found.troubles.lanes_left_out:,})" in html
    assert max(len(points) for points in found.troubles.curves.values()) < 1000


def test_the_sentences_stay_few() -> None:
    said = said_of(restless())
    assert len(said.sentences) < 25
    assert all(len(each.text) < 400 for each in said.sentences)
