"""`History` answers what `kraftline history` answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from kraftline.cli.main import verbs
from kraftline.lake.coverage import NoAnswer
from kraftline.lake.lake import Lake
from kraftline.lake.questions import rows_of, timeline
from kraftline.lake.tables import HISTORY, TABLES
from kraftline.spark.questions import History
from tests.fixture_files import FIXTURES
from tests.lake.lakes import covered, lake_of, rows_of_log, span, write_lake
from tests.spark.building import batch, build_lake, removed, topics_log, write_log

Asked: TypeAlias = Callable[..., list[dict[str, Any]]]
NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lakes") / "lake"
    lake_of(root, NODE, "A")
    return root


@pytest.fixture(scope="module")
def history(spark: SparkSession, lake: Path) -> History:
    return History(spark, str(lake))


@pytest.fixture
def cli(lake: Path) -> Asked:
    def run(verb: str, *arguments: object) -> list[dict[str, Any]]:
        said = ["history", verb, str(lake), *map(str, arguments), "--format", "json"]
        result = CliRunner().invoke(verbs, said)
        assert result.exit_code == 0, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows

    return run


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return rows_of(frame.toArrow())


@pytest.mark.parametrize("offset", [60, 250])
def test_every_table_as_of_an_offset_is_that_of_the_command_line(
    history: History, cli: Asked, offset: int
) -> None:
    stood = history.as_of(offset=offset)
    for table in HISTORY:
        assert rows(stood.table(table.name)) == cli("as-of", table.name, "--at", offset), table.name


def test_as_of_a_time_is_that_of_the_command_line(history: History, cli: Asked) -> None:
    time = "2026-11-15T22:27:32.500Z"
    stood = history.as_of(time=time)
    for name in ("topics", "partitions", "brokers", "health"):
        assert rows(stood.table(name)) == cli("as-of", name, "--at", time)


def test_rows_are_chosen_as_on_the_command_line(history: History, cli: Asked) -> None:
    stood = history.as_of(offset=250)
    assert rows(stood.table("partitions", topics=["o*s"])) == cli(
        "as-of", "partitions", "--at", 250, "--topic", "o*s"
    )
    assert rows(stood.table("partitions", brokers=[3])) == cli(
        "as-of", "partitions", "--at", 250, "--broker", 3
    )
    assert rows(stood.table("partitions", topics=[r"it's \ odd"])) == []
    named = history.health(topics="orders", brokers=(), kinds="offline")
    assert rows(named) == cli("health", "--topic", "orders", "--type", "offline")
    assert rows(named)


def test_difference_is_that_of_the_command_line(history: History, cli: Asked) -> None:
    found = history.diff(40, 250)
    for name in ("topics", "partitions", "brokers", "configs", "acls", "producer_ids"):
        there = rows(found.table(name))
        assert there == cli("diff", 40, 250, "--table", name)
        assert there


def test_changes_are_those_of_the_command_line(history: History, cli: Asked) -> None:
    assert rows(history.changes(since=200)) == cli("changes", "--since", 200)
    leaders = rows(history.changes(kinds=["leader"], brokers=[2]))
    assert leaders == cli("changes", "--type", "leader", "--broker", 2)
    assert leaders
    until = "2026-11-15T22:27:32Z"
    assert rows(history.changes(until=until)) == cli("changes", "--until", until)


def test_health_is_that_of_the_command_line(history: History, cli: Asked) -> None:
    assert rows(history.health()) == cli("health")
    since = "2026-11-15T22:28:00Z"
    found = rows(history.health(since=since, topics=["orders"]))
    assert found == cli("health", "--since", since, "--topic", "orders")
    assert found


def test_a_topic_has_a_timeline(history: History, lake: Path) -> None:
    told = rows(history.topic("single").timeline())
    assert told == rows_of(timeline(Lake.at(str(lake)), "single"))
    kinds = [row["kind"] for row in told]
    assert kinds[0] == "topic.created"
    assert "offline" in kinds
    assert [row["time"] for row in told] == sorted(row["time"] for row in told)


def test_tables_are_views_for_sql(history: History, spark: SparkSession) -> None:
    assert history.views("told_") == [f"told_{name}" for name in (*TABLES, "records")]
    row = spark.sql("SELECT count(*) AS topics FROM told_topics WHERE state = 'open'").first()
    assert row is not None
    assert row["topics"] == 6
    assert spark.sql("SELECT * FROM told_groups").count() == 0


def test_a_cluster_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    name = "prod/eu 100% & 'more'"
    topic = {"cluster_id": name, "topic": "a", "topic_id": "id", **span(0)}
    write_lake(tmp_path, {"topics": [topic], "coverage": [covered(name, 0, 9)]})
    history = History(spark, str(tmp_path))
    found = rows(history.as_of(offset=3, cluster=name).table("topics"))
    assert [(row["cluster_id"], row["topic"]) for row in found] == [(name, "a")]


def test_a_history_goes_on_reading_its_build(spark: SparkSession, tmp_path: Path) -> None:
    log = rows_of_log(NODE, "A")
    write_lake(tmp_path, log)
    history = History(spark, str(tmp_path))
    before = rows(history.as_of().table("topics"))
    write_lake(tmp_path, {"topics": log["topics"][:1]})
    assert rows(history.as_of().table("topics")) == before
    assert len(rows(History(spark, str(tmp_path)).table("topics"))) == 1


def test_what_cannot_be_answered_is_said(history: History) -> None:
    with pytest.raises(NoAnswer, match="there is no table nothing"):
        history.as_of().table("nothing")
    with pytest.raises(NoAnswer, match="has no cluster B"):
        history.as_of(cluster="B")
    with pytest.raises(NoAnswer, match="has no cluster B"):
        history.topic("orders", cluster="B").timeline()
    with pytest.raises(NoAnswer, match="neither an offset"):
        history.as_of(time="yesterday")
    with pytest.raises(NoAnswer, match="not both"):
        history.as_of(offset=1, time="2026-11-15T22:28:00Z")


def test_the_log_itself_is_a_table_and_a_view(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "node", topics_log(0, 3), batch(3, removed("t1")))
    build_lake(spark, tmp_path / "lake", tmp_path / "node")
    history = History(spark, str(tmp_path / "lake"))
    assert history.table("records").count() == 4
    history.views("log_")
    said = "SELECT `offset`, topic.name FROM log_records WHERE type = 'TOPIC_RECORD' ORDER BY 1"
    assert [tuple(row) for row in spark.sql(said).collect()] == [(0, "t0"), (1, "t1"), (2, "t2")]
