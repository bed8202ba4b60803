"""Records in Parquet: what real logs hold, with their places, times and secrets blanked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema import metadata as m
from kraftline.spark.inputs import find_inputs, of_clusters
from kraftline.spark.plan import ClusterPlan, Quarantined, plan_cluster
from kraftline.spark.record_table import file_schema, records_table
from kraftline.spark.stage import stage
from kraftline.spark.survey import survey
from tests.fixture_files import FIXTURES, records
from tests.spark.building import batch, topic, topics_log, write_log

Row = dict[str, Any]


class StagedRows:
    """What was staged from some paths: rows by record type, the plan, and what was put aside."""

    def __init__(self, spark: SparkSession, folder: Path, *paths: Path) -> None:
        files = of_clusters(find_inputs(map(str, paths)), "c")
        files = [file for file in files if file.is_metadata]
        cluster = str(files[0].cluster_id)
        self.plan: ClusterPlan = plan_cluster(cluster, files, survey(spark, files, {}))
        staged = stage(spark, self.plan.pieces, str(folder), listen=False)
        self.quarantined: list[Quarantined] = staged.quarantined
        self.types: dict[str, list[Row]] = {}
        for added in staged.added:
            record_type = str(added.partition["type"])
            with pq.ParquetFile(folder / added.path) as file:
                table = file.read()
            assert table.schema.names == file_schema(record_type).names
            assert added.rows == table.num_rows
            self.types.setdefault(record_type, []).extend(table.to_pylist())

    @property
    def rows(self) -> list[Row]:
        found = [{"type": name, **row} for name, rows in self.types.items() for row in rows]
        return sorted(found, key=lambda row: (row["offset"], row["index"]))


@pytest.fixture(scope="module")
def real(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StagedRows:
    return StagedRows(spark, tmp_path_factory.mktemp("lake"), FIXTURES / "metadata_4_3" / "data")


def test_every_record_of_the_log_is_there_once(real: StagedRows) -> None:
    logs = sorted(FIXTURES.glob("metadata_4_3/data/node-1/__cluster_metadata-0/*.log"))
    kafkas = [row for path in logs for row in records(path)]
    rows = real.rows
    assert [row["offset"] for row in rows] == [row["offset"] for row in kafkas]
    assert [row["epoch"] for row in rows] == [row["partitionLeaderEpoch"] for row in kafkas]
    assert [row["position"] for row in rows] == [row["position"] for row in kafkas]
    stamps = [round(row["timestamp"].timestamp() * 1000) for row in rows]
    assert stamps == [row["timestamp"] for row in kafkas]


def test_log_time_is_the_highest_batch_time_so_far(real: StagedRows) -> None:
    logs = sorted(FIXTURES.glob("metadata_4_3/data/node-1/__cluster_metadata-0/*.log"))
    expected, highest = [], 0
    for row in (row for path in logs for row in records(path)):
        highest = max(highest, row["maxTimestamp"])
        expected.append(highest)
    assert [round(row["log_time"].timestamp() * 1000) for row in real.rows] == expected


def test_what_lies_below_the_newest_snapshot_is_committed(real: StagedRows) -> None:
    end = real.plan.committed_to
    assert end == 231
    assert all(row["committed"] == (row["offset"] < end) for row in real.rows)


def test_secrets_are_blanked(real: StagedRows) -> None:
    for row in real.types["USER_SCRAM_CREDENTIAL_RECORD"]:
        said = row["user_scram_credential"]
        assert (said["salt"], said["stored_key"], said["server_key"]) == (b"", b"", b"")
        assert said["iterations"] > 0


def test_values_of_secret_configs_are_hidden_and_their_removal_shows(
    spark: SparkSession, tmp_path: Path
) -> None:
    def config(name: str, value: str | None) -> m.ConfigRecord:
        return m.ConfigRecord(resource_type=4, resource_name="1", name=name, value=value)

    key = "listener.name.x.ssl.keystore.password"
    messages = (config(key, "hush"), config("log.retention.ms", "1"), config(key, None))
    write_log(tmp_path / "node", batch(0, *messages))
    found = StagedRows(spark, tmp_path / "lake", tmp_path / "node").types["CONFIG_RECORD"]
    assert [row["config"]["value"] for row in found] == ["[hidden]", "1", None]
    files = b"".join(file.read_bytes() for file in (tmp_path / "lake").rglob("*.parquet"))
    assert b"hush" not in files


def test_control_records_have_their_payload_as_json(real: StagedRows) -> None:
    [first, *_] = real.types["LEADER_CHANGE"]
    assert json.loads(first["payload"])["leaderId"] == 1
    assert first["offset"] == 0


def test_rows_of_a_base_snapshot_stand_at_its_last_offset_in_its_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = FIXTURES / "metadata_4_3/data/node-1/__cluster_metadata-0"
    name = "00000000000000000098-0000000001.checkpoint"
    found = StagedRows(spark, tmp_path, source / name)
    assert {row["offset"] for row in found.rows} == {97}
    assert all(row["in_snapshot"] and row["committed"] for row in found.rows)
    kafkas = list(records(source / name))
    assert [row["index"] for row in found.rows] == [row["offset"] for row in kafkas]
    header = found.types["SNAPSHOT_HEADER"][0]
    time = json.loads(header["payload"])["lastContainedLogTimestamp"]
    assert {round(row["log_time"].timestamp() * 1000) for row in found.rows} == {time}


def test_a_record_that_nobody_knows_is_kept_and_told_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    value = b"\x01\xc8\x01\x00???"  # frame 1, type 200, version 0
    strange = build_batch([Record(1, 5, None, value)], partition_leader_epoch=1)
    write_log(tmp_path / "node", batch(0, topic("a")), strange, batch(2, topic("b")))
    found = StagedRows(spark, tmp_path / "lake", tmp_path / "node")
    [row] = found.types["UNREADABLE"]
    assert (row["offset"], row["value"], row["version"]) == (1, value, None)
    [told] = found.quarantined
    assert (told.kind, told.from_offset, told.to_offset) == ("unknown", 1, 2)
    assert "200" in told.reason
    assert len(found.types["TOPIC_RECORD"]) == 2


def test_a_secret_record_that_cannot_be_read_leaves_no_bytes(
    spark: SparkSession, tmp_path: Path
) -> None:
    value = b"\x01\x0b\x00\x07secret"
    strange = build_batch([Record(0, 5, None, value)], partition_leader_epoch=1)
    write_log(tmp_path / "node", strange)
    found = StagedRows(spark, tmp_path / "lake", tmp_path / "node")
    assert [row["value"] for row in found.types["UNREADABLE"]] == [None]
    assert [row.kind for row in found.quarantined] == ["unreadable"]


def test_only_the_wanted_offsets_of_a_run_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "a", topics_log(0, 10))
    write_log(tmp_path / "b", topics_log(5, 10), base=5)
    found = StagedRows(spark, tmp_path / "lake", tmp_path / "a", tmp_path / "b")
    assert [row["offset"] for row in found.rows] == list(range(15))


def test_the_table_has_a_struct_for_every_type_with_fields() -> None:
    names = records_table().columns.names
    assert {"topic", "partition_change", "broker_registration_change", "config"} <= set(names)
    assert "no_op" not in names
