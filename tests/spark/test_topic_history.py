"""What came of topic segments stays in the lake when Kafka has compacted or deleted these, or when
a run is not shown all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.spark.inputs import find_inputs, of_clusters
from kraftline.spark.survey import survey
from kraftline.spark.topics import lag
from tests.fixture_files import FIXTURES
from tests.spark.building import SEGMENT, build_lake, rows

DAY = FIXTURES / "eventful_day" / "data"
GROUPS = ("groups", "group_offsets")


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return [
        Path(shutil.copytree(node, tmp_path / node.name))
        for node in sorted(DAY.iterdir())
        if node.is_dir()
    ]


def compacted(log: Path) -> dict[bytes | None, list[Record]]:
    """Keeps the last record of each key; all that there were, by key."""
    found: dict[bytes | None, list[Record]] = {}
    for batch in batches(log.read_bytes()):
        if not batch.is_control:
            for record in batch.records():
                found.setdefault(record.key, []).append(record)
    last = sorted((records[-1] for records in found.values()), key=lambda each: each.offset)
    write(log, last)
    return found


def write(log: Path, records: list[Record]) -> None:
    log.write_bytes(b"".join(build_batch([record]) for record in records))
    for index in log.parent.glob("*index"):
        index.unlink()


def test_a_run_with_one_node_keeps_what_is_known_of_others(
    spark: SparkSession, nodes: list[Path], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    build_lake(spark, lake, *nodes)
    before = {name: rows(lake, name) for name in ("topic_sizes", *GROUPS)}
    shutil.rmtree(nodes[0] / "sessions-0")  # gone from where the run looks
    build_lake(spark, lake, nodes[0])
    gone = str(nodes[0] / "sessions-0")
    kept = [row for row in before["topic_sizes"] if not row["file"].startswith(gone)]
    assert len(kept) < len(before["topic_sizes"])
    assert rows(lake, "topic_sizes") == kept
    for name in GROUPS:
        assert rows(lake, name) == before[name], name


def test_commits_that_were_compacted_away_stay_and_new_ones_follow(
    spark: SparkSession, nodes: list[Path], tmp_path: Path
) -> None:
    node, lake = nodes[0], tmp_path / "lake"
    log = node / "__consumer_offsets-0" / SEGMENT
    build_lake(spark, lake, node)
    before = {name: rows(lake, name) for name in GROUPS}
    found = compacted(log)
    shutil.rmtree(node / "orders-0")  # and with it how far behind its groups were
    outcome = build_lake(spark, lake, node)
    assert outcome.build is not None
    assert {name: rows(lake, name) for name in GROUPS} == before
    # A commit once more as one was before, and the end of another.
    commits = [each for key, each in found.items() if key and key[:2] == b"\0\1" and each[3:]]
    again, gone = commits[0][0], commits[1][-1]
    end = max(records[-1].offset for records in found.values()) + 10
    last = sorted((records[-1] for records in found.values()), key=lambda each: each.offset)
    time = last[-1].timestamp + 1000
    more = [Record(end, time, again.key, again.value), Record(end + 1, time, gone.key, None)]
    write(log, [*last, *more])
    build_lake(spark, lake, node)
    after = rows(lake, "group_offsets")
    assert len(after) == len(before["group_offsets"]) + 1
    [new] = [row for row in after if row["valid_from_offset"] == end]
    assert new["state"] == "open"
    ended = sorted(row["valid_to_offset"] for row in after if (row["valid_to_offset"] or 0) >= end)
    assert ended == [end, end + 1]
    assert rows(lake, "groups") == before["groups"]


def test_lag_of_new_commits_is_that_of_one_run(
    spark: SparkSession, nodes: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_MUCH", 0)
    node, lake, whole = nodes[0], tmp_path / "lake", tmp_path / "whole"
    build_lake(spark, whole, node)
    log = node / "__consumer_offsets-0" / SEGMENT
    data, ends = log.read_bytes(), [0]
    for batch in batches(data):
        ends.append(ends[-1] + batch.size_in_bytes)
    log.write_bytes(data[: ends[len(ends) // 2]])
    build_lake(spark, lake, node)
    assert len(rows(lake, "group_offsets")) < len(rows(whole, "group_offsets"))
    log.write_bytes(data)
    build_lake(spark, lake, node)
    assert rows(lake, "group_offsets") == rows(whole, "group_offsets")


def test_segments_before_all_that_is_wanted_are_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    times = {0: (1000, 3000, 2000), 30: (3000, 4000), 50: (5000, 6000)}
    for base, each in times.items():
        found = [
            build_batch([Record(base + 10 * at + i, time, None, b"v") for i in range(10)])
            for at, time in enumerate(each)
        ]
        (folder / f"{base:020}.log").write_bytes(b"".join(found))
    files = of_clusters(find_inputs([str(tmp_path)]), "c")
    surveyed = survey(spark, files, {})
    key = ("c", "orders", 0)

    def ends(wanted: lag.Wanted | None) -> list[tuple[int, int]]:
        found = lag.log_ends(spark, files, surveyed, wanted).select("time", "end_offset").collect()
        return sorted((time, end) for time, end in found if time > 0)

    batchwise = [(1000, 10), (2000, 30), (3000, 20), (3000, 40), (4000, 50), (5000, 60), (6000, 70)]
    assert ends(None) == ends({key: 0}) == ends({key: 2999}) == batchwise
    (folder / f"{0:020}.log").unlink()
    assert ends({key: 3000}) == [(3000, 30), *batchwise[3:]]
    (folder / f"{30:020}.log").unlink()
    assert ends({key: 4500}) == [(3000, 30), (4000, 50), *batchwise[5:]]
    (folder / f"{50:020}.log").unlink()
    assert ends({}) == [(3000, 30), (4000, 50), (6000, 70)]


@pytest.mark.soak
def test_members_of_a_compacted_log_are_not_counted_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = shutil.copytree(FIXTURES / "topics_4_3" / "data", tmp_path / "data")
    lake = tmp_path / "lake"
    build_lake(spark, lake, Path(data))
    before = rows(lake, "groups")
    assert {row["kind"] for row in before} >= {"consumer", "share", "streams"}
    for log in Path(data).rglob(f"__consumer_offsets-*/{SEGMENT}"):
        if log.stat().st_size:
            compacted(log)
    outcome = build_lake(spark, lake, Path(data))
    assert outcome.build is not None
    assert rows(lake, "groups") == before
