"""Topics as tables: what is in them, what is left out and said so, and when they appear."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kraftline.cli.dump import command as dump
from kraftline.cli.topic_data import command
from kraftline.errors import KraftlineError
from kraftline.records import Record, build_batch
from kraftline.spark.topic_data.export import Export, Exported, export
from kraftline.storage.names import format_segment_file
from tests.spark.segments.rows import LOG, NODE, SECOND, kafkas_rows, plain, read
from tests.spark.segments.test_isolation import consumers_view


def exported(spark: SparkSession, *paths: Path, out: Path, **wanted: object) -> Exported:
    return export(
        spark,
        Export(paths=tuple(map(str, paths)), out=str(out), **wanted),  # type: ignore[arg-type]
    )


def made(folder: Path, name: str, values: list[bytes | None], base: int = 0) -> Path:
    """A partition whose records have these values, three to a batch."""
    directory = folder / name
    directory.mkdir(parents=True, exist_ok=True)
    batches = []
    for first in range(0, len(values), 3):
        records = [
            Record(base + first + n, 1_700_000_000_000 + first + n, b"k", value)
            for n, value in enumerate(values[first : first + 3])
        ]
        batches.append(build_batch(records))
    (directory / format_segment_file(base)).write_bytes(b"".join(batches))
    return directory


def test_parquet_holds_what_a_consumer_sees(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = exported(spark, NODE, SECOND, out=out)
    assert done.problems == []
    rows = plain(spark.read.parquet(str(out)))
    expected = plain(
        read(spark, NODE, SECOND, isolation="read_committed").where("topic not like '\\\\_\\\\_%'")
    )
    key = lambda row: (row["file"], row["offset"])  # noqa: E731
    assert sorted(rows, key=key) == sorted(expected, key=key)
    assert sum(each.written for each in done.partitions) == len(rows)
    transactions = next(each for each in done.partitions if each.name == "transactions-0")
    assert transactions.written == len(consumers_view(NODE / "transactions-0"))
    assert transactions.aborted > 0
    assert transactions.control > 0
    assert transactions.undecided == 2
    assert transactions.missing == 0
    trimmed = next(each for each in done.partitions if each.name == "trimmed-0")
    assert (trimmed.deleted, trimmed.written) == (4, 16)
    compacted = next(each for each in done.partitions if each.name == "compacted-none-0")
    assert compacted.missing > 0


def test_delta_is_a_table_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "events"
    exported(spark, NODE / "mixed-0", out=out, format="delta", value="text")
    table = DeltaTable(str(out))
    assert table.metadata().partition_columns == ["topic"]
    rows = table.to_pyarrow_dataset().to_table().to_pylist()
    expected = [row for log in sorted((NODE / "mixed-0").glob("*.log")) for row in kafkas_rows(log)]
    assert sorted((row["offset"], row["value"]) for row in rows) == [
        (row["offset"], row["value"].decode()) for row in expected
    ]
    assert {row["topic"] for row in rows} == {"mixed"}


def test_json_becomes_typed_fields_and_the_rest_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    values: list[bytes | None] = [
        b'{"id": 1, "price": 2.5, "tags": ["a"], "by": {"name": "Ada"}}',
        b'{"id": 2}',
        None,
        b"not json",
        b"\xff\xfe",
        b"[1, 2]",
        b" null\n",
        b'{"ID": 3, "id": 4}',
        b'{"id": 5}{"id": 6}',
        b'{"id": 7, "id": 8, "_corrupt_record": "x"}',
    ]
    source = made(tmp_path, "orders-0", values)
    done = exported(spark, source, out=tmp_path / "out", value="json", key="text")
    rows = (
        ds.dataset(tmp_path / "out", partitioning="hive").to_table().sort_by("offset").to_pylist()
    )
    nothing = dict.fromkeys(("id", "ID", "price", "tags", "by", "_corrupt_record"))
    full = {"id": 1, "price": 2.5, "tags": ["a"], "by": {"name": "Ada"}}
    assert rows[0]["value"] == {**nothing, **full}
    assert rows[1]["value"] == {**nothing, "id": 2}
    assert rows[7]["value"] == {**nothing, "ID": 3, "id": 4}
    assert rows[9]["value"] == {**nothing, "id": 8, "_corrupt_record": "x"}
    assert [row["value_error"] for row in rows[:3]] == [None] * 3
    assert rows[2]["value"] is None
    assert rows[4]["value_error"] == "not UTF-8"
    kept = [row["value_bytes"] for row in rows]
    assert kept == [None, None, None, *values[3:6], None, None, values[8], None]
    assert {row["key"] for row in rows} == {"k"}
    assert done.errors == {"key_error": 0, "value_error": 4}
    assert done.problems == []
    with pytest.raises(KraftlineError, match="fields ID and id, which are one to Delta"):
        exported(spark, source, out=tmp_path / "delta", value="json", format="delta")


def test_values_that_are_no_json_at_all_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = made(tmp_path, "orders-0", [b"plain", b"words"])
    with pytest.raises(KraftlineError, match="give --value text, or bytes"):
        exported(spark, source, out=tmp_path / "out", value="json")
    assert not (tmp_path / "out").exists()


def test_only_the_times_asked_for_are_written(spark: SparkSession, tmp_path: Path) -> None:
    start = 1_700_000_000_000
    source = made(tmp_path, "orders-0", [b"%d" % n for n in range(30)])
    done = exported(spark, source, out=tmp_path / "out", since=start + 10, until=start + 20)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.offset for row in rows) == list(range(10, 20))
    assert done.problems == []


def test_of_two_replicas_that_reach_as_far_the_sound_one_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    for node in ("a", "b"):
        made(tmp_path / node, "orders-0", [b"x"] * 9)
    log = tmp_path / "a" / "orders-0" / LOG
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    done = exported(spark, tmp_path, out=tmp_path / "out")
    assert done.copies == [str(log.parent)]
    assert [each.written for each in done.partitions] == [9]
    assert done.problems == []


def test_damage_is_left_out_and_told(spark: SparkSession, tmp_path: Path) -> None:
    source = made(tmp_path, "orders-0", [b"%d" % n for n in range(9)])
    made(tmp_path, "orders-0", [b"more"] * 3, base=9)
    log = source / LOG
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    done = exported(spark, source, out=tmp_path / "out")
    (partition,) = done.partitions
    assert (partition.written, partition.missing, partition.damaged) == (9, 3, 1)
    (problem,) = done.problems
    assert problem.startswith("1 range (")
    assert f"{log}, position" in problem
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.offset for row in rows) == [0, 1, 2, 6, 7, 8, 9, 10, 11]


def test_a_folder_that_is_there_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    source = made(tmp_path, "orders-0", [b"x"])
    (tmp_path / "out").mkdir()
    with pytest.raises(KraftlineError, match="is there already"):
        exported(spark, source, out=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_is_left_behind_by_a_run_that_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(tmp_path / "in", "orders-0", [b"x"])

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kraftline.spark.topic_data.export._written", full)
    with pytest.raises(OSError, match="No space"):
        exported(spark, source, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_verb_prints_counts_and_exits_1_on_damage(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraftline.spark.session.local_session", lambda name: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    source = tmp_path / "codec-gzip-0"
    shutil.copytree(NODE / "codec-gzip-0", source)
    log = min(source.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[100] ^= 0xFF
    log.write_bytes(data)
    done = CliRunner().invoke(
        command, [str(source), "--to", str(tmp_path / "out"), "--value", "text"]
    )
    assert done.exit_code == 1, done.output
    assert "codec-gzip-0" in done.stdout
    told = [line for line in done.stderr.splitlines() if line.startswith("kraftline: ")]
    assert len(told) == 1
    assert f"{log}, position 0: the checksum" in told[0]


def test_a_table_of_counts_names_partitions_and_their_offsets_in_full(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it goes: a log file has no width that names would have to be cut to."""
    monkeypatch.setattr("kraftline.spark.session.local_session", lambda name: spark)
    source = tmp_path / f"a-{'very-' * 20}long-name-0"
    shutil.copytree(NODE / "codec-gzip-0", source)
    done = CliRunner().invoke(command, [str(source), "--to", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(source.name))
    assert line.split()[1:] == ["0", "to", "74", "75", "0", "0", "0", "0", "0"]


def test_a_window_of_the_verb_has_its_end_as_windows_of_dump_have(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraftline.spark.session.local_session", lambda name: spark)
    window = ("--since", "2023-11-14T22:13:20.010Z", "--until", "2023-11-14T22:13:20.030Z")
    asked = [str(NODE / "codec-gzip-0"), *window]
    done = CliRunner().invoke(command, [*asked, "--to", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    written = spark.read.parquet(str(tmp_path / "out")).collect()
    dumped = CliRunner().invoke(dump, [*asked, "--format", "jsonl"]).stdout.splitlines()
    assert {row.offset for row in written} == {1, 2, 3}
    assert {json.loads(line)["offset"] for line in dumped} == {1, 2, 3}


def test_what_cannot_be_written_or_asked_for_starts_no_java(tmp_path: Path) -> None:
    args = [str(NODE), "--to", str(tmp_path)]
    done = CliRunner().invoke(command, args)
    assert isinstance(done.exception, KraftlineError)
    assert f"{tmp_path}: is there already" in str(done.exception)
    times = ("--since", "2026-03-01T04:00Z", "--until", "2026-03-01T03:00Z")
    done = CliRunner().invoke(command, [str(NODE), "--to", str(tmp_path / "out"), *times])
    assert done.exit_code == 2
    assert "--until lies before --since" in done.output


def test_a_wrong_path_starts_no_java(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kraftline", "topic-data", str(tmp_path / "nowhere")]
    wrong = subprocess.run(
        [*words, "--to", str(tmp_path / "other")], capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no such file or directory" in wrong.stderr
