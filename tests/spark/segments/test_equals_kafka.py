"""Every record of every fixture as Kafka's own classes read it: formats 0, 1 and 2, all codecs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftline.storage.names import PartitionState, parse_partition
from tests.fixture_files import FIXTURES
from tests.spark.segments.rows import NODE, SECOND, kafkas_rows, plain, read


def topic_logs(node: Path) -> list[Path]:
    """The segments that belong to topics in use: what a broker would open."""
    found = []
    for log in sorted(node.glob("*/*.log")):
        name = parse_partition(log.parent.name)
        assert name is not None
        wanted = name.state is PartitionState.NORMAL and name.topic != "__cluster_metadata"
        if wanted and log.stat().st_size:
            found.append(log)
    return found


@pytest.mark.parametrize(
    "node",
    [
        NODE,
        SECOND,
        FIXTURES / "topics_2_8/data/broker-0",
        FIXTURES / "topics_0_10/data/broker-0",
        FIXTURES / "killed_4_3/data/node-1",
    ],
    ids=lambda node: "/".join(node.parts[-3::2]),
)
def test_a_log_directory_gives_what_kafka_reads(spark: SparkSession, node: Path) -> None:
    expected = [row for log in topic_logs(node) for row in kafkas_rows(log)]
    assert plain(read(spark, node)) == expected
    assert expected


def test_all_formats_are_in_the_fixtures(spark: SparkSession) -> None:
    rows = plain(read(spark, FIXTURES / "topics_2_8/data/broker-0/all-formats-0"))
    assert {row["timestamp_type"] for row in rows} >= {"NoTimestampType", "CreateTime"}
    # Format 0 has no times, format 1 no producers.
    assert {row["timestamp"] is None for row in rows} == {True, False}


def test_small_and_large_splits_give_the_same_rows(spark: SparkSession) -> None:
    whole = plain(read(spark, SECOND))
    for size in (1, 300, 5000):
        assert plain(read(spark, SECOND, splitBytes=size)) == whole
