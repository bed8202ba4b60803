"""The table `changes` tells what `kraftline changes` tells, in the same words."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from kraftline.inspect.cluster.story import Filter, story
from kraftline.inspect.cluster.telling import Told
from tests.spark.history.staging import Part, Row, Tables

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def test_fixtures_are_told_as_by_the_command(
    fixtures: list[Part], built: dict[str, Tables]
) -> None:
    for part in fixtures:
        check(part, built[part.cluster_id])


def test_generated_logs_are_told_as_by_the_command(
    generated: list[Part], built: dict[str, Tables]
) -> None:
    for part in generated:
        check(part, built[part.cluster_id])


def check(part: Part, tables: Tables) -> None:
    gaps = {leg.first_offset for leg in part.history.legs[1:]}
    expected = Counter(
        _told(one, part.history.time_of(one.offset))
        for one in story(part.history, None, None, Filter())
        # That a transaction is open would not stay true.
        if one.change.kind != "transaction.open"
        # A lake keeps nothing by which other credentials would show behind a gap.
        and not (one.change.kind == "scram.changed" and one.offset in gaps)
    )
    found = Counter(map(_row, tables["changes"]))
    assert not expected - found, (part.cluster_id, expected - found, found - expected)
    assert not found - expected, (part.cluster_id, found - expected)


def _told(one: Told, ms: int) -> tuple[object, ...]:
    change, time = one.change, _ZERO + timedelta(milliseconds=ms)
    named = (change.kind, change.subject, change.topic, change.partition, change.because)
    return one.offset, time, *named, change.text


def _row(row: Row) -> tuple[object, ...]:
    named = (row["kind"], row["subject"], row["topic"], row["partition"], row["cause"])
    return row["offset"], row["time"], *named, row["text"]
