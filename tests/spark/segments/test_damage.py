"""Bad input: the good is read, the bad is named, and nothing is left out in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftline.spark.segment_survey import segment_damage
from tests.spark.segments.rows import LOG, NODE, kafkas_rows, plain, read
from tests.storage.batches import some_batches

GZIP = NODE / "codec-gzip-0"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A partition with three segments, of which anything may be broken."""
    target = tmp_path / GZIP.name
    shutil.copytree(GZIP, target)
    return target


def broken(log: Path, position: int, byte: int = 0xFF) -> None:
    data = bytearray(log.read_bytes())
    data[position] ^= byte
    log.write_bytes(data)


def batch_starts(log: Path) -> list[int]:
    return sorted({int(row["position"]) for row in kafkas_rows(GZIP / log.name)})


def test_a_wrong_checksum_stops_the_query_and_is_named(spark: SparkSession, copied: Path) -> None:
    log = sorted(copied.glob("*.log"))[1]
    broken(log, 100)
    with pytest.raises(Exception, match=rf"{log}, position 0, offset \d+: the checksum") as raised:
        read(spark, copied).collect()
    assert "onDamage" in str(raised.value)


@pytest.mark.parametrize("byte", [100, 16, 9], ids=["records", "magic", "length"])
def test_with_skip_all_but_the_bad_batch_is_read_and_that_is_listed(
    spark: SparkSession, copied: Path, byte: int
) -> None:
    log = sorted(copied.glob("*.log"))[1]
    starts = batch_starts(log)
    broken(log, byte)
    good = [
        row["offset"]
        for each in sorted(GZIP.glob("*.log"))
        for row in kafkas_rows(each)
        if (each.name, row["position"]) != (log.name, starts[0])
    ]
    found = plain(read(spark, copied, onDamage="skip"))
    assert [row["offset"] for row in found] == good
    (listed,) = segment_damage(spark, str(copied)).collect()
    assert (listed.file, listed.from_position) == (str(log), 0)
    assert listed.to_position == (starts[1] if len(starts) > 1 else log.stat().st_size)
    assert listed.reason


def test_a_closed_segment_that_is_cut_off_is_damage(spark: SparkSession, copied: Path) -> None:
    log = min(copied.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-10])
    with pytest.raises(Exception, match="the segment ends within a batch"):
        read(spark, copied).collect()
    (listed,) = segment_damage(spark, str(copied)).collect()
    assert "ends within a batch" in listed.reason


def test_the_half_written_end_of_the_last_segment_is_not_there_yet(
    spark: SparkSession, copied: Path
) -> None:
    log = max(copied.glob("*.log"))
    last = batch_starts(log)[-1]
    log.write_bytes(log.read_bytes()[:-10])
    whole = [
        row["offset"]
        for each in sorted(GZIP.glob("*.log"))
        for row in kafkas_rows(each)
        if (each.name, row["position"]) != (log.name, last)
    ]
    assert [row["offset"] for row in plain(read(spark, copied))] == whole
    assert segment_damage(spark, str(copied)).count() == 0


def test_a_batch_that_arrives_in_a_preallocated_file_is_not_there_yet(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "grows-0"
    folder.mkdir()
    batches = some_batches(4)
    half = batches[3][:-5] + bytes(5)
    (folder / LOG).write_bytes(b"".join(batches[:3]) + half + bytes(4096))
    assert read(spark, folder).count() == 6
    assert segment_damage(spark, str(folder)).count() == 0


def test_the_other_partitions_of_a_broken_one_are_read(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("codec-gzip-0", "codec-lz4-0"):
        shutil.copytree(NODE / name, tmp_path / name)
    for log in (tmp_path / "codec-gzip-0").glob("*.log"):
        log.write_bytes(b"not Kafka's" * 50)
    found = read(spark, tmp_path, onDamage="skip").groupBy("topic").count().collect()
    assert {row.topic: row["count"] for row in found} == {"codec-lz4": 75}
    assert segment_damage(spark, str(tmp_path)).count() == 3


def test_a_stale_index_loses_no_record(spark: SparkSession, copied: Path) -> None:
    other = NODE / "mixed-0"
    for index in copied.glob("*.index"):
        shutil.copy(min(other.glob("*.index")), index)
    rows = [row["offset"] for log in sorted(GZIP.glob("*.log")) for row in kafkas_rows(log)]
    for start in (0, 10, 30, 60):
        found = plain(read(spark, copied, splitBytes=200, startOffset=start))
        assert [row["offset"] for row in found] == [each for each in rows if each >= start]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "there is no such file or directory"),
        ("", "nothing of Kafka's in it"),
        ("*.log", "nothing is there by such a name"),
        ("notes.txt", "not a segment"),
    ],
    ids=["wrong path", "empty directory", "empty glob", "another file"],
)
def test_a_path_without_segments_says_what_to_give(
    spark: SparkSession, tmp_path: Path, path: str, words: str
) -> None:
    if path == "notes.txt":
        (tmp_path / path).write_text("hello, I am no segment")
    with pytest.raises(Exception, match=words):
        read(spark, tmp_path / path).collect()
