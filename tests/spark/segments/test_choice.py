"""Options and filters choose records; nothing that they choose is missing, whatever is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftline.spark.sources.options import BadOption
from kraftline.spark.sources.pushdown import narrowed
from kraftline.spark.sources.segment_options import parse_options
from kraftline.spark.sources.segments import plan
from tests.fixture_files import FIXTURES
from tests.spark.segments.rows import LOG, NODE, SECOND, instant, kafkas_rows, plain, read

MIXED = NODE / "mixed-0"
HOUR = 3_600_000
START = 1_700_000_000_000  # of the first segment's records; later ones are two hours apart


def mixed() -> list[dict[str, object]]:
    return [row for log in sorted(MIXED.glob("*.log")) for row in kafkas_rows(log)]


def test_paths_are_files_directories_globs_and_urls(spark: SparkSession) -> None:
    logs = sorted(MIXED.glob("*.log"))
    assert len(logs) > 1
    everything = mixed()
    for paths in ([MIXED], logs, [f"{MIXED}/*.log"], [f"{NODE}/mixe*"], [f"file://{MIXED}"]):
        assert plain(read(spark, *paths)) == everything


def test_other_storage_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    import zipfile

    packed = tmp_path / "backup.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted([*MIXED.iterdir(), *(NODE / "transactions-0").iterdir()]):
            archive.write(file, f"{file.parent.name}/{file.name}")
    for name, isolation in (("mixed-0", "read_uncommitted"), ("transactions-0", "read_committed")):
        url = f"zip://{name}::file://{packed}"
        found = plain(read(spark, url, isolation=isolation, splitBytes=2000).drop("file"))
        assert found == plain(read(spark, NODE / name, isolation=isolation).drop("file"))


def test_topics_are_chosen_by_name_and_pattern(spark: SparkSession) -> None:
    def topics(**options: str) -> set[str]:
        return {row.topic for row in read(spark, NODE, **options).select("topic").collect()}

    assert topics(topics="mixed") == {"mixed"}
    assert topics(topics="codec-*, mixed") == {"codec-gzip", "codec-lz4", "mixed"}
    assert "__cluster_metadata" not in topics()
    assert topics(topics="__cluster_metadata") == {"__cluster_metadata"}


@pytest.mark.parametrize(("start", "end"), [(0, 1), (24, 26), (70, 80), (60, 1000), (374, 375)])
def test_offsets_bound_what_is_read(spark: SparkSession, start: int, end: int) -> None:
    found = read(spark, MIXED, startOffset=start, endOffset=end)
    assert plain(found) == [row for row in mixed() if start <= int(str(row["offset"])) < end]


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (START, START + 1),
        (START + 105, START + 2 * HOUR + 1),
        (START + 2 * HOUR + 30, START + 4 * HOUR + 11),
        (START + 50 * HOUR, START + 60 * HOUR),
    ],
)
def test_times_bound_what_is_read(spark: SparkSession, since: int, until: int) -> None:
    first, last = instant(since), instant(until)
    assert first is not None
    assert last is not None
    expected = [row for row in mixed() if first <= row["timestamp"] < last]  # type: ignore[operator]
    assert plain(read(spark, MIXED, startTime=since, endTime=until)) == expected
    said = read(spark, MIXED, startTime=first.isoformat(), endTime=last.isoformat())
    assert plain(said) == expected


def test_records_without_a_time_are_in_no_range_of_times(spark: SparkSession) -> None:
    old = FIXTURES / "topics_0_10/data/broker-0/v0-none-0"
    assert read(spark, old).count() > 0
    assert read(spark, old, endTime="2100-01-01").count() == 0


def test_only_the_columns_of_a_given_schema_are_made(spark: SparkSession) -> None:
    found = read(spark, MIXED, schema="value binary, offset long")
    assert found.columns == ["value", "offset"]
    rows = sorted(found.collect(), key=lambda row: row.offset)
    assert [bytes(row.value) for row in rows] == [row["value"] for row in mixed()]
    nothing = read(spark, MIXED, schema="codec string").groupBy("codec").count().collect()
    assert {row.codec: row["count"] for row in nothing} == dict.fromkeys(
        ("none", "gzip", "snappy", "lz4", "zstd"), 75
    )


def test_filters_of_a_query_narrow_what_is_read(spark: SparkSession) -> None:
    found = read(spark, NODE)
    wanted = found.where(
        (F.col("topic") == "mixed")
        & (F.col("offset") >= 70)
        & (F.col("offset") < 80)
        & F.col("partition").isin(0, 1)
        & (F.col("timestamp") > F.lit("2020-01-01").cast("timestamp"))
    )
    assert plain(wanted) == [row for row in mixed() if 70 <= int(str(row["offset"])) < 80]


def test_filters_skip_topics_files_and_bytes() -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

    def size(*filters: object) -> tuple[set[str | None], int]:
        options = narrowed(parse_options({"path": str(NODE)}), filters)  # type: ignore[arg-type]
        pieces = [piece for split in plan(options) for piece in split.pieces]
        return {piece.topic for piece in pieces}, sum(p.end - p.start for p in pieces)

    everything = size()
    only = size(EqualTo(("topic",), "mixed"))
    fewer = size(EqualTo(("topic",), "mixed"), GreaterThanOrEqual(("offset",), 60))
    fewest = size(
        EqualTo(("topic",), "mixed"),
        GreaterThanOrEqual(("offset",), 60),
        LessThan(("offset",), 70),
    )
    assert only[0] == {"mixed"}
    assert everything[1] > only[1] > fewer[1] > fewest[1] > 0
    assert size(EqualTo(("topic",), "nowhere")) == (set(), 0)


def test_hostile_times_are_null(spark: SparkSession, tmp_path: Path) -> None:
    from kraftline.records import Record, build_batch

    times = [-1, 0, 1_700_000_000_000, 253_402_300_799_999, 253_402_300_800_000, 2**62]
    folder = tmp_path / "odd-0"
    folder.mkdir()
    batches = [build_batch([Record(n, time, None, b"x")]) for n, time in enumerate(times)]
    (folder / LOG).write_bytes(b"".join(batches))
    found = plain(read(spark, folder))
    assert [row["timestamp"] is None for row in found] == [True, False, False, False, True, True]
    assert found[2]["timestamp"] == instant(times[2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topic": "orders"}, "did you mean topics"),
        ({"isolation": "serializable"}, "read_uncommitted or read_committed"),
        ({"startOffset": "-3"}, "startOffset is '-3'"),
        ({"endTime": "yesterday"}, "give it like 2026-03-01T03:12:00Z"),
        ({"decode": "metadata"}, "none or offsets or transactions or share"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        parse_options({"path": str(SECOND), **options})


def test_a_wrong_column_is_named(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="there is no column price"):
        read(spark, MIXED, schema="price double").collect()
    with pytest.raises(Exception, match="the column offset is bigint, not string"):
        read(spark, MIXED, schema="offset string").collect()
