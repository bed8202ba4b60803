"""Builds: what a second run adds, copies that are one log, conflicts, damage, crashes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kraftline.errors import KraftlineError, NotKafka
from kraftline.lake import builds
from kraftline.lake.lake import Lake
from kraftline.lake.tables import TOPICS
from kraftline.schema import metadata as m
from kraftline.spark.watch import watch
from tests.effort import SOAK
from tests.fixture_files import FIXTURES
from tests.spark.building import (
    batch,
    build_lake,
    copied,
    names,
    removed,
    rows,
    topic,
    topics_log,
    write_log,
)

LOG = "__cluster_metadata-0/00000000000000000000.log"
# Files differ from lake to lake, and so does what only tells of them.
_PLACES = ("file", "source")


def same(one: Path, other: Path, *tables: str) -> None:
    """Whether two lakes tell the same."""
    for table in tables or ("records", "topics", "coverage", "quarantine"):
        found = [
            [{name: row[name] for name in row if name not in _PLACES} for row in rows(lake, table)]
            for lake in (one, other)
        ]
        assert sorted(found[0], key=repr) == sorted(found[1], key=repr), table


def test_a_lake_holds_what_the_log_says(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "node", topics_log(0, 5), batch(5, removed("t3")))
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert (outcome.build, outcome.records, outcome.rows["topics"]) == (1, 6, 5)
    assert names(tmp_path / "lake") == {
        "t0": (0, None),
        "t1": (1, None),
        "t2": (2, None),
        "t3": (3, 5),
        "t4": (4, None),
    }


def test_a_second_run_adds_only_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    parts = [topics_log(0, 5), batch(5, removed("t3")), topics_log(6, 3) + batch(9, removed("t1"))]
    for count in (1, 2, 3):
        write_log(tmp_path / "node", *parts[:count])
        outcome = build_lake(spark, lake, tmp_path / "node")
        assert outcome.anew == ()
        assert outcome.records == (5, 1, 4)[count - 1]
    build_lake(spark, tmp_path / "whole", tmp_path / "node")
    same(lake, tmp_path / "whole")


def test_without_news_there_is_no_build(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "node", topics_log(0, 5))
    build_lake(spark, tmp_path / "lake", tmp_path / "node")
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert outcome.build is None
    assert Lake.at(str(tmp_path / "lake")).build.build == 1


def test_a_transaction_that_was_open_takes_effect_when_it_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    begin, end = m.BeginTransactionRecord(name="x"), m.EndTransactionRecord()
    parts = [
        topics_log(0, 2) + batch(2, begin) + batch(3, topic("first")),
        batch(4, topic("second")),
        batch(5, end) + batch(6, topic("after")),
    ]
    seen = []
    for count in (1, 2, 3):
        write_log(tmp_path / "node", *parts[:count])
        build_lake(spark, tmp_path / "lake", tmp_path / "node")
        seen.append(sorted(names(tmp_path / "lake")))
    assert seen[0] == seen[1] == ["t0", "t1"]
    found = names(tmp_path / "lake")
    assert (found["first"], found["second"], found["after"]) == ((5, None), (5, None), (6, None))


def test_two_nodes_copies_are_one_log(spark: SparkSession, tmp_path: Path) -> None:
    data = FIXTURES / "metadata_4_3" / "data"
    both = tmp_path / "both"
    outcome = build_lake(spark, both, data / "node-1", data / "node-2")
    build_lake(spark, tmp_path / "one", data / "node-1")
    assert outcome.records == 299
    assert outcome.quarantined == ()
    # How much is known to be committed is a matter of the snapshots that are there.
    columns = [name for name in TOPICS.columns.names if name != "committed"]
    assert rows(both, "topics", *columns) == rows(tmp_path / "one", "topics", *columns)


def test_the_loser_of_a_conflict_is_in_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "a", topics_log(0, 12))
    write_log(tmp_path / "b", topics_log(0, 8), topics_log(8, 2, epoch=2))
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "a", tmp_path / "b")
    assert sorted(names(tmp_path / "lake")) == sorted(
        [*(f"t{n}" for n in range(8)), "t8-2", "t9-2"]
    )
    [lost] = rows(tmp_path / "lake", "quarantine")
    assert (lost["kind"], lost["from_offset"], lost["to_offset"]) == ("conflict", 8, 12)
    assert lost["file"] == str(tmp_path / "a" / LOG)
    assert len(outcome.quarantined) == 1


def test_a_tail_that_was_built_and_has_lost_leaves_no_trace(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path / "a", topics_log(0, 12))
    build_lake(spark, tmp_path / "lake", tmp_path / "a")
    # The first segment is gone meanwhile: what the lake has of it must do.
    write_log(tmp_path / "b", topics_log(8, 2, epoch=2), base=8)
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "b")
    assert outcome.anew == ("c",)
    assert sorted(names(tmp_path / "lake")) == sorted(
        [*(f"t{n}" for n in range(8)), "t8-2", "t9-2"]
    )
    offsets = [row["offset"] for row in rows(tmp_path / "lake", "records", "offset")]
    assert sorted(offsets) == list(range(10))


def test_segments_that_were_deleted_since_stay_in_the_lake(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = write_log(tmp_path / "node", topics_log(0, 5))
    write_log(tmp_path / "node", topics_log(5, 5), base=5)
    build_lake(spark, tmp_path / "lake", tmp_path / "node")
    first.unlink()
    write_log(tmp_path / "node", topics_log(5, 9), base=5)
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert (outcome.anew, outcome.records) == ((), 4)
    assert len(names(tmp_path / "lake")) == 14


def test_a_corrupt_segment_among_good_ones_costs_only_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    size = len(batch(0, topic("t0")))
    write_log(tmp_path / "node", topics_log(0, 5))
    broken = write_log(tmp_path / "node", topics_log(5, 5), base=5)
    data = bytearray(broken.read_bytes())
    data[2 * size + 65] ^= 4
    broken.write_bytes(data)
    write_log(tmp_path / "node", topics_log(10, 5), base=10)
    outcome = build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert sorted(names(tmp_path / "lake")) == [f"t{n}" for n in range(7)]
    [bad] = outcome.quarantined
    assert (bad.kind, bad.from_offset, bad.to_offset) == ("damage", 7, 8)
    covered = rows(tmp_path / "lake", "coverage", "how", "from_offset", "to_offset")
    assert {row["how"]: (row["from_offset"], row["to_offset"]) for row in covered} == {
        "log": (0, 7),
        "gap": (7, 8),
        "unbased": (8, 15),
    }
    # Another node has what is missing.
    write_log(tmp_path / "other", topics_log(0, 15))
    build_lake(spark, tmp_path / "lake", tmp_path / "node", tmp_path / "other")
    assert len(names(tmp_path / "lake")) == 15
    assert len(rows(tmp_path / "lake", "quarantine")) == 1


def test_wrong_inputs_leave_no_lake_behind(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(NotKafka):
            build_lake(spark, tmp_path / "lake", path)
    assert not (tmp_path / "lake").exists()


def test_a_failure_on_the_way_leaves_the_lake_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "node", topics_log(0, 5))
    build_lake(spark, tmp_path / "lake", tmp_path / "node")
    before = _files(tmp_path / "lake")
    write_log(tmp_path / "node", topics_log(0, 9))

    def fail(*_: object) -> dict[str, Any]:
        raise KraftlineError("no room left")

    monkeypatch.setattr("kraftline.spark.build.write_history", fail)
    with pytest.raises(KraftlineError, match="no room left"):
        build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert _files(tmp_path / "lake") == before
    monkeypatch.undo()
    build_lake(spark, tmp_path / "lake", tmp_path / "node")
    assert len(names(tmp_path / "lake")) == 9


def _files(lake: Path) -> set[str]:
    return {str(file.relative_to(lake)) for file in lake.rglob("*.parquet")}


_BEGINS = """
import sys
from pathlib import Path
from kraftline.spark.session import local_session
from kraftline.spark.watch import watch
from tests.spark.building import build_lake
spark = local_session(cores=1)
print("begins", flush=True)
"""
_BUILD = "build_lake(spark, Path(sys.argv[1]), Path(sys.argv[2]))"
_WATCH = """
lake, node = sys.argv[1:]
watch(spark, [node], lake, cluster_id="c", seconds=0.1)
"""


@pytest.mark.parametrize(
    "work",
    [pytest.param(_BUILD, id="build"), pytest.param(_WATCH, id="watch", marks=pytest.mark.soak)],
)
def test_a_killed_run_leaves_nothing_that_a_rerun_trips_over(
    spark: SparkSession, tmp_path: Path, work: str
) -> None:
    lake, node = tmp_path / "lake", tmp_path / "node"
    log = b""
    for number in range(20 if SOAK else 1):
        end = 40 * (number + 1)
        log += topics_log(end - 40, 39) + batch(end - 1, removed(f"t{end - 30}"))
        write_log(node, log)
        run = subprocess.Popen(
            [sys.executable, "-c", _BEGINS + work, str(lake), str(node)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(random.uniform(0, 6))
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
        build_lake(spark, lake, node)
        build_lake(spark, tmp_path / f"undisturbed-{number}", node)
        same(lake, tmp_path / f"undisturbed-{number}")


def test_a_watched_directory_is_built_when_it_grows(spark: SparkSession, tmp_path: Path) -> None:
    node = tmp_path / "node"
    write_log(node, topics_log(0, 5))
    seen = []

    def built(outcome: Any) -> None:
        seen.append(outcome.records)
        if len(seen) == 1:
            write_log(node, topics_log(0, 8))

    watch(
        spark,
        [str(node)],
        str(tmp_path / "lake"),
        cluster_id="c",
        built=built,
        seconds=0.2,
        rounds=2,
    )
    assert seen == [5, 3]
    assert len(names(tmp_path / "lake")) == 8


def test_a_watch_that_cannot_go_on_says_why(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, lake = tmp_path / "node", tmp_path / "lake"
    write_log(node, topics_log(0, 5))
    settings: dict[str, Any] = {"cluster_id": "c", "seconds": 0.2, "rounds": 2}
    with pytest.raises(NotKafka, match=rf"^{node}: there is no such file or directory$"):
        watch(spark, [str(node)], str(lake), built=lambda _: shutil.rmtree(node), **settings)
    write_log(node, topics_log(0, 8))
    monkeypatch.setattr(builds, "LAYOUT", 99)
    with pytest.raises(KraftlineError, match=rf"^{lake}: a lake of layout 1; .* it$"):
        watch(spark, [str(node)], str(lake), **settings)


def test_topic_segments_make_their_tables(spark: SparkSession, tmp_path: Path) -> None:
    node = copied(FIXTURES / "metadata_4_3/data/node-1", tmp_path / "node")
    outcome = build_lake(spark, tmp_path / "lake", node)
    assert outcome.rows["topic_sizes"] == len(rows(tmp_path / "lake", "topic_sizes")) > 0
