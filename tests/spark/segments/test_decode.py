"""Internal topics as typed columns: the JSON of Kafka's own dump, and offsets flat."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from tests.fixture_files import FIXTURES, says
from tests.oracle.dump import parse_log
from tests.spark.segments.rows import NODE, SECOND, plain, read

LOGS = {
    "offsets": NODE / "__consumer_offsets-0",
    "transactions": SECOND / "__transaction_state-0",
    "share": SECOND / "__share_group_state-0",
}


@pytest.mark.parametrize("decode", LOGS)
def test_payloads_are_those_of_kafkas_dump(spark: SparkSession, decode: str) -> None:
    folder = LOGS[decode]
    expected = {}
    for log in sorted(folder.glob("*.log")):
        text = says(log, "dump.txt")
        assert text is not None
        for batch in parse_log(text):
            for record in batch["records"]:  # type: ignore[union-attr]
                if "control" not in record:  # type: ignore[operator]
                    expected[record["offset"]] = record["key"], record["payload"]  # type: ignore[index, call-overload]
    found = {}
    for row in plain(read(spark, folder, decode=decode)):
        assert row["problem"] is None
        if not row["is_control"]:
            value = row["value_payload"]
            # Kafka prints <DELETE> where there is no value.
            found[row["offset"]] = (
                json.loads(row["key_payload"]),
                "<DELETE>" if value is None else json.loads(value),
            )
    assert found == expected
    assert found


def test_offsets_are_flat(spark: SparkSession) -> None:
    columns = (
        "key_type string, `group` string, offset_topic string, offset_partition int, "
        "committed_offset long, metadata string, value binary"
    )
    rows = read(spark, NODE, decode="offsets", schema=columns).collect()
    commits = [
        (row.offset_topic, row.offset_partition, row.committed_offset, row.metadata)
        for row in rows
        if row.group == "simple" and row.key_type == "OFFSET_COMMIT"
    ]
    # By hand, then one of them deleted.
    assert commits == [
        ("mixed", 0, 3, "by hand äöü"),
        ("odd", 0, 1, ""),
        ("odd", 0, None, None),
    ]
    assert {row.group for row in rows} >= {"classic-left", "consumer-regex", "share-stays"}


def test_offsets_of_an_aborted_transaction_were_never_committed(spark: SparkSession) -> None:
    def committed(isolation: str) -> list[int]:
        rows = read(spark, NODE, decode="offsets", isolation=isolation).where(
            "`group` = 'by-transaction' and key_type = 'OFFSET_COMMIT'"
        )
        return [row["committed_offset"] for row in plain(rows)]

    assert committed("read_committed") == [7]
    assert committed("read_uncommitted") == [7, 9]


def test_the_oldest_group_records_are_understood(spark: SparkSession) -> None:
    old = FIXTURES / "topics_0_10/data/broker-0"
    rows = plain(read(spark, old, decode="offsets"))
    assert rows
    assert {row["problem"] for row in rows} == {None}
    assert any(row["committed_offset"] is not None for row in rows)


def test_what_is_no_group_record_keeps_its_bytes_and_says_why(spark: SparkSession) -> None:
    rows = plain(
        read(spark, SECOND / "odd-0", decode="offsets", topics="odd").where("not is_control")
    )
    assert len(rows) == 19
    assert all(row["problem"] for row in rows)
    assert any(row["value"] for row in rows)
