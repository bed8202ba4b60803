"""`kraftline info` as a person or a program uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from tests.inspect.damage import METADATA, TOPICS, copy


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["info", *map(str, arguments)])


def test_a_log_directory_at_a_glance() -> None:
    result = run(METADATA)
    assert result.exit_code == 0
    for words in (
        "Log directory",
        "kraftlineoracleclustrA",
        "version 1 (KRaft)",
        "clean, broker epoch",
        "metadata.version",
        "leader 1 in epoch",
        "snapshot up to",
        "largest first",
        "orders-0",
    ):
        assert words in result.stdout
    assert "\x1b" not in result.stdout
    assert all(len(line) <= 120 and line == line.rstrip() for line in result.stdout.splitlines())


def test_a_partition_at_a_glance() -> None:
    result = run(TOPICS / "transactions-0")
    assert result.exit_code == 0
    for words in ("Partition transactions-0", "leader epochs", "high watermark", ".txnindex"):
        assert words in result.stdout


def test_a_file_at_a_glance() -> None:
    result = run(TOPICS / "transactions-0" / "00000000000000000003.log")
    assert result.exit_code == 0
    for words in ("Segment", "first offset", "batches", "codecs", "none"):
        assert words in result.stdout


def test_json_is_one_object() -> None:
    whole = json.loads(run("--format", "json", METADATA).stdout)
    assert whole["kind"] == "log directory"
    assert whole["clean_shutdown"] is True
    assert whole["metadata_log"]["end_offset"] > 0
    assert {"topic", "size", "partitions"} <= set(whole["topics"][0])


def test_lines_and_csv_have_a_row_per_partition() -> None:
    lines = [json.loads(line) for line in run("--format", "jsonl", TOPICS).stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv", TOPICS).stdout)))
    assert [line["topic"] for line in lines] == [row["topic"] for row in rows]
    assert "mixed" in [row["topic"] for row in rows]


def test_many_partitions_are_summed_up_by_topic(tmp_path: Path) -> None:
    for topic in range(45):
        for number in range(2):
            folder = tmp_path / f"topic{topic:02}-{number}"
            folder.mkdir()
            (folder / "00000000000000000000.log").write_bytes(b"")
    short, long = run(tmp_path), run("--all", tmp_path)
    assert "… and 5 more topics" in short.stdout
    assert long.stdout.count("topic") >= 90


def test_what_could_not_be_read_ends_with_1(tmp_path: Path) -> None:
    node = copy(TOPICS, tmp_path)
    (node / "meta.properties").write_text("version=9\n")
    result = run(node)
    assert result.exit_code == 1
    assert "Could not be read" in result.stdout
    assert "meta.properties" in result.stdout


def test_what_is_not_kafkas_ends_with_2(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "not a directory of Kafka's" in result.stderr


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "kraftline info /var/lib/kafka" in result.stdout
