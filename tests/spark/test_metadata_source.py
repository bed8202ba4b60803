"""`kraft_metadata`: rows of real logs as Kafka's own tools print them, and streams over them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kraftline.spark
from tests.fixture_files import FIXTURES, says
from tests.spark.building import batch, copied, topic, topics_log, write_log

LOGS = FIXTURES / "metadata_4_3" / "data" / "node-1" / "__cluster_metadata-0"
_LINE = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*?\] (?:payload: |(\w+):? )(\{.*\})")
_CONTROL = {
    "LeaderChange": "LEADER_CHANGE",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
}
Told = tuple[int, str, Any]


def load(spark: SparkSession, *paths: Path, **options: str) -> DataFrame:
    kraftline.spark.register(spark)
    reader = spark.read.format("kraft_metadata").options(**options)
    return reader.load([str(path) for path in paths])


def told_by_kafka(path: Path) -> list[Told]:
    """(offset in the file, type, data) of every record, from kafka-dump-log."""
    text = says(path, "dump.txt")
    assert text is not None
    found: list[Told] = []
    for offset, _, control, said in _LINE.findall(text):
        payload = json.loads(said)
        if control:
            found.append((int(offset), _CONTROL[control], payload))
        else:
            found.append((int(offset), payload["type"], payload["data"]))
    return found


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[dict[str, Any]]:
    found = load(spark, FIXTURES / "metadata_4_3/data/node-1", structs="TOPIC_RECORD,partition")
    return [row.asDict(True) for row in found.collect()]


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: str(path.stem))
def test_records_of_a_log_are_as_kafka_prints_them(rows: list[dict[str, Any]], path: Path) -> None:
    mine = sorted((row for row in rows if row["file"] == str(path)), key=lambda row: row["offset"])
    found = [(row["offset"], row["type"], json.loads(row["payload"])) for row in mine]
    _compare(found, told_by_kafka(path))
    assert {row["cluster_id"] for row in mine} == {"kraftlineoracleclustrA"}
    assert {row["node"] for row in mine} == {1}


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.checkpoint")), ids=lambda p: str(p.stem))
def test_rows_of_snapshots_stand_at_the_last_offset_they_contain(
    rows: list[dict[str, Any]], path: Path
) -> None:
    mine = sorted((row for row in rows if row["snapshot"] == path.stem), key=lambda r: r["index"])
    found = [(row["index"], row["type"], json.loads(row["payload"])) for row in mine]
    _compare(found, told_by_kafka(path))
    end = int(path.stem[:20])
    assert {row["offset"] for row in mine} == {max(end - 1, 0)}
    assert all(row["in_snapshot"] for row in mine)


def _compare(found: list[Told], expected: list[Told]) -> None:
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for (_, kind, mine), (_, _, kafkas) in zip(found, expected, strict=True):
        if kind == "USER_SCRAM_CREDENTIAL_RECORD":
            assert {mine.pop(name) for name in ("salt", "storedKey", "serverKey")} == {"[hidden]"}
            kafkas = {name: kafkas[name] for name in mine}
        assert mine == kafkas


def test_structs_are_there_for_the_types_that_were_asked_for(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        data = json.loads(row["payload"])
        if row["type"] == "TOPIC_RECORD":
            assert row["topic"] == {"name": data["name"], "topic_id": data["topicId"]}
        else:
            assert row["topic"] is None
        if row["type"] == "PARTITION_RECORD":
            assert row["partition"]["replicas"] == data["replicas"]


def test_only_the_columns_that_are_named_are_read(spark: SparkSession) -> None:
    kraftline.spark.register(spark)
    reader = spark.read.format("kraft_metadata").schema("type string, offset long")
    found = reader.load(str(LOGS / "00000000000000000154.log"))
    assert found.columns == ["type", "offset"]
    assert found.where("type = 'NO_OP_RECORD'").count() > 0


def test_a_large_file_is_split_and_still_read_once(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, topics_log(0, 3000))
    frame = load(spark, tmp_path, cluster_id="c", splitBytes="50000")
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(3000))


@pytest.mark.parametrize(("place", "reason"), [(70, "checksum"), (8, "length")])
def test_damage_fails_the_query_or_is_left_out(
    spark: SparkSession, tmp_path: Path, place: int, reason: str
) -> None:
    file = write_log(tmp_path, topics_log(0, 30))
    data = bytearray(file.read_bytes())
    data[3 * len(batch(0, topic("t0"))) + place] ^= 0x7F
    file.write_bytes(data)
    with pytest.raises(PySparkException, match=reason):
        load(spark, tmp_path, cluster_id="c").count()
    assert load(spark, tmp_path, cluster_id="c", onDamage="skip").count() == 29


def test_wrong_use_is_told_in_words(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, topics_log(0, 3))
    with pytest.raises(PySparkException, match="the option clusterId"):
        load(spark, tmp_path).count()
    with pytest.raises(PySparkException, match="did you mean structs"):
        load(spark, tmp_path, struct="all").count()


def test_a_cluster_id_is_only_for_directories_that_do_not_say_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path, topics_log(0, 3))
    found = load(spark, tmp_path, FIXTURES / "metadata_4_3/data/node-1", clusterId="given")
    counts = {row.cluster_id: row["count"] for row in found.groupBy("cluster_id").count().collect()}
    assert counts.pop("given") == 3
    assert counts.keys() == {"kraftlineoracleclustrA"}


class Follower:
    """A stream into Parquet files, run over and over from one checkpoint."""

    def __init__(self, spark: SparkSession, root: Path, source: Path | str) -> None:
        self._spark, self._root, self._source = spark, root, source

    def run(self) -> list[int]:
        """Read what is there; all offsets read since the beginning."""
        kraftline.spark.register(self._spark)
        reader = self._spark.readStream.format("kraft_metadata").option("cluster_id", "c")
        query = (
            reader.load(str(self._source))
            .select("offset", "type")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._root / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self._root / "out"))
        )
        query.awaitTermination()
        rows = self._spark.read.parquet(str(self._root / "out")).collect()
        return sorted(row.offset for row in rows)


def test_a_stream_follows_a_log_over_half_batches_and_segments(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "node"
    file = write_log(source, topics_log(0, 10))
    follower = Follower(spark, tmp_path, source)
    assert follower.run() == list(range(10))
    # A batch that is half there is not there; one with all its bytes is.
    half = batch(10, topic("half"), topic("whole"))
    whole = file.read_bytes()
    file.write_bytes(whole + half[: len(half) // 2])
    assert follower.run() == list(range(10))
    file.write_bytes(whole + half)
    assert follower.run() == list(range(12))
    # The log rolls, and its first segment goes.
    write_log(source, topics_log(12, 5), base=12)
    assert follower.run() == list(range(17))
    file.unlink()
    write_log(source, topics_log(12, 8), base=12)
    assert follower.run() == list(range(20))
    assert follower.run() == list(range(20))


def test_a_second_node_is_followed_from_its_beginning(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "nodes"
    write_log(source / "a", topics_log(0, 5))
    follower = Follower(spark, tmp_path, source)
    assert follower.run() == list(range(5))
    copied(source / "a", source / "b")
    assert follower.run() == sorted([*range(5), *range(5)])


def test_a_stream_follows_a_url_of_this_machines_own_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "node"
    write_log(source, topics_log(0, 3))
    assert Follower(spark, tmp_path, source.as_uri()).run() == list(range(3))
