"""What read_committed leaves out, against a replay on paper of what Kafka reads from the files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.fixture_files import FIXTURES
from tests.spark.segments.rows import NODE, SECOND, kafkas_rows, plain, read

TRANSACTIONAL = [
    NODE / "transactions-0",
    SECOND / "transactions-1",
    NODE / "compacted-transactions-0",
    NODE / "__consumer_offsets-0",
    FIXTURES / "topics_2_8/data/broker-0/transactions-0",
]
_ABORT = b"\0\0\0\0"


def consumers_view(directory: Path) -> list[dict[str, Any]]:
    """The records that are neither control, nor aborted, nor behind an open transaction."""
    rows = [row for log in sorted(directory.glob("*.log")) for row in kafkas_rows(log)]
    opened: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    for row in rows:
        if row["is_control"]:
            first = opened.pop(row["producer_id"], None)
            if first is not None and row["key"] == _ABORT:
                aborted.append((row["producer_id"], first, row["offset"]))
        elif row["is_transactional"]:
            opened.setdefault(row["producer_id"], row["offset"])
    end = min(opened.values(), default=rows[-1]["offset"] + 1)
    return [
        row
        for row in rows
        if row["offset"] < end
        and not row["is_control"]
        and not any(
            producer == row["producer_id"] and first <= row["offset"] <= last
            for producer, first, last in aborted
        )
    ]


@pytest.mark.parametrize("directory", TRANSACTIONAL, ids=lambda each: each.name)
def test_a_committed_reader_sees_what_a_consumer_does(spark: SparkSession, directory: Path) -> None:
    expected = consumers_view(directory)
    assert plain(read(spark, directory, isolation="read_committed")) == expected
    assert expected


def test_the_fixture_has_all_that_must_be_left_out(spark: SparkSession) -> None:
    everything = plain(read(spark, NODE / "transactions-0"))
    seen = consumers_view(NODE / "transactions-0")
    controls = [row for row in everything if row["is_control"]]
    assert {row["key"] == _ABORT for row in controls} == {True, False}
    assert everything[-1]["offset"] > max(row["offset"] for row in seen)
    assert len(everything) > len(seen) + len(controls)


@pytest.mark.parametrize("kept", [("*.log",), ("*.log", "*.snapshot")], ids=["bare", "snapshots"])
def test_without_indexes_the_headers_tell_what_was_aborted(
    spark: SparkSession, tmp_path: Path, kept: tuple[str, ...]
) -> None:
    for directory in TRANSACTIONAL:
        bare = tmp_path / directory.parent.name / directory.name
        bare.mkdir(parents=True)
        for pattern in kept:
            for file in directory.glob(pattern):
                shutil.copy(file, bare)
        expected = consumers_view(directory)
        found = plain(read(spark, bare, isolation="read_committed").drop("file"))
        assert found == [{k: v for k, v in row.items() if k != "file"} for row in expected]


def test_one_segment_alone_is_judged_by_its_whole_log(spark: SparkSession) -> None:
    first = min((NODE / "transactions-0").glob("*.log"))
    expected = [row for row in consumers_view(first.parent) if row["file"] == str(first)]
    assert plain(read(spark, first, isolation="read_committed")) == expected


def test_what_was_deleted_below_the_log_start_is_not_shown(spark: SparkSession) -> None:
    shown = plain(read(spark, SECOND / "trimmed-0", isolation="read_committed"))
    assert [row["offset"] for row in shown] == list(range(14, 30))
    held = plain(read(spark, SECOND / "trimmed-0"))
    assert [row["offset"] for row in held] == list(range(10, 30))
