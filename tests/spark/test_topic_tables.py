"""Groups, their offsets and how far behind they were, from segments that real Kafka wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kraftline.lake.tables import GROUP_OFFSETS, GROUPS, TOPIC_SIZES
from kraftline.spark import register
from kraftline.spark.inputs import find_inputs, of_clusters
from kraftline.spark.survey import survey
from kraftline.spark.topics import topic_tables
from tests.fixture_files import FIXTURES

Rows = dict[str, list[dict[str, Any]]]


def tables_of(spark: SparkSession, *paths: Path) -> Rows:
    register(spark)
    files = of_clusters(find_inputs([str(path) for path in paths]), "a-cluster")
    found = topic_tables(spark, files, survey(spark, files, {}))
    return {name: [row.asDict(True) for row in frame.collect()] for name, frame in found.items()}


@pytest.fixture(scope="module")
def day(spark: SparkSession) -> Rows:
    data = FIXTURES / "eventful_day" / "data"
    return tables_of(spark, *sorted(data.iterdir()))


def test_rows_have_the_columns_of_the_lake(day: Rows) -> None:
    for table in (GROUPS, GROUP_OFFSETS, TOPIC_SIZES):
        assert list(day[table.name][0]) == table.columns.names


@pytest.fixture(scope="module")
def told() -> list[dict[str, Any]]:
    """The group coordinator's log, record by record."""
    log = FIXTURES / "eventful_day/data/node-1/__consumer_offsets-0/00000000000000000000.log"
    dump = [sys.executable, "-m", "kraftline", "dump", str(log), "--format", "jsonl"]
    said = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def test_every_commit_is_a_row_once_though_three_nodes_have_it(
    day: Rows, told: list[dict[str, Any]]
) -> None:
    commits = [each for each in told if (each["keyPayload"] or {}).get("type") == "1"]
    rows = day["group_offsets"]
    assert sorted(row["valid_from_offset"] for row in rows) == [each["offset"] for each in commits]


def test_what_is_open_is_what_each_group_committed_last(
    day: Rows, told: list[dict[str, Any]]
) -> None:
    last = {}
    for each in told:
        if (each["keyPayload"] or {}).get("type") == "1":
            key = each["keyPayload"]["data"]
            last[key["group"], key["topic"], key["partition"]] = each["payload"]["data"]["offset"]
    still = {
        (row["group"], row["topic"], row["partition"]): row["committed_offset"]
        for row in day["group_offsets"]
        if row["state"] == "open"
    }
    assert still == last
    assert len(last) > 3


def test_one_group_keeps_up_and_the_other_falls_behind(day: Rows) -> None:
    def lags(group: str) -> list[int]:
        rows = [row for row in day["group_offsets"] if row["group"] == group]
        assert all(row["lag"] == row["log_end_offset"] - row["committed_offset"] for row in rows)
        return [row["lag"] for row in rows]

    assert max(lags("billing")) < 30
    assert max(lags("analytics")) > 100


def test_a_groups_rows_follow_each_other_without_a_gap(day: Rows) -> None:
    analytics = [row for row in day["groups"] if row["group"] == "analytics"]
    analytics.sort(key=lambda row: row["valid_from_offset"])
    assert [row["group_state"] for row in analytics][:2] == ["Empty", "Stable"]
    for one, next_one in pairwise(analytics):
        assert one["valid_to_offset"] == next_one["valid_from_offset"]


def test_sizes_are_those_of_the_files_and_of_all_copies(day: Rows) -> None:
    rows = day["topic_sizes"]
    assert all(row["bytes"] == Path(row["file"]).stat().st_size for row in rows)
    nodes = {row["node"] for row in rows if (row["topic"], row["partition"]) == ("orders", 0)}
    assert nodes == {1, 2, 3}


def test_groups_of_all_kinds_and_old_formats_are_read(spark: SparkSession) -> None:
    paths = [FIXTURES / name for name in ("topics_4_3/data", "topics_2_8/data", "topics_0_10/data")]
    tables = tables_of(spark, *paths)
    kinds = {row["kind"] for row in tables["groups"]}
    assert kinds == {"classic", "consumer", "share", "streams"}
    assert len({row["cluster_id"] for row in tables["group_offsets"]}) >= 2
