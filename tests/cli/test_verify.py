"""`kraftline verify` as a person or a program uses it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from tests.inspect.damage import LOG, METADATA, TOPICS, change_value, copy, data_batches, flip


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["verify", *map(str, arguments)])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A metadata log whose third data batch has a byte too many in its first record."""
    partition = copy(METADATA / "__cluster_metadata-0", tmp_path)
    log = partition / LOG
    change_value(log, data_batches(log)[2], lambda value: value + b"\x00")
    for index in (*partition.glob("*.index"), *partition.glob("*.timeindex")):
        index.unlink()
    return partition


def test_a_sound_directory_ends_with_0_and_a_summary() -> None:
    result = run(TOPICS)
    assert result.exit_code == 0
    last = result.stdout.splitlines()[-1]
    assert last.startswith("no findings")
    for word in ("files", "batches", "records", "kB", " s"):
        assert word in last


def test_findings_end_with_1_and_say_where_what_and_what_it_means(broken: Path) -> None:
    result = run(broken)
    assert result.exit_code == 1
    assert str(broken / LOG) in result.stdout
    assert "record-leftover" in result.stdout
    assert "position " in result.stdout
    assert "1 byte left over" in result.stdout
    assert "→ " in result.stdout
    assert "\x1b" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 finding")


def test_first_answers_which_record_it_is(broken: Path) -> None:
    result = run("--first", broken)
    assert result.exit_code == 1
    lines = dict(
        line.split(None, 1) for line in result.stdout.splitlines() if line.startswith("  ")
    )
    assert lines["file"] == str(broken / LOG)
    assert lines["code"] == "record-leftover"
    assert lines["bytes"].startswith("01 ")
    assert lines["offset"].isdigit()
    assert "to try" in result.stdout


def test_first_on_a_sound_log_says_so() -> None:
    result = run("--first", METADATA / "__cluster_metadata-0")
    assert result.exit_code == 0
    assert "Every record can be read." in result.stdout


def test_json_is_one_object(broken: Path) -> None:
    whole = json.loads(run("--format", "json", broken).stdout)
    assert set(whole) == {"findings", "notes", "summary"}
    (found,) = whole["findings"]
    assert set(found) == {
        "file",
        "code",
        "position",
        "offset",
        "record",
        "problem",
        "meaning",
        "start",
    }
    assert found["code"] == "record-leftover"
    assert bytes.fromhex(found["start"])[0] == 1
    assert whole["summary"]["findings"] == 1


def test_json_lines_end_with_the_summary(broken: Path) -> None:
    lines = [json.loads(line) for line in run("--format", "jsonl", broken).stdout.splitlines()]
    assert [line["kind"] for line in lines if line["kind"] != "note"] == ["finding", "summary"]
    assert lines[-1]["findings"] == 1


def test_csv_has_a_row_per_finding(broken: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv", broken).stdout)))
    assert [row["code"] for row in rows if row["kind"] == "finding"] == ["record-leftover"]


def test_many_of_a_kind_are_counted_and_not_all_shown(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / LOG
    log.parent.mkdir()
    from kraftline.records import Record, build_batch

    log.write_bytes(
        b"".join(
            build_batch([Record(n, n, None, b"x")], partition_leader_epoch=100 - n)
            for n in range(60)
        )
    )
    short, long = run(log), run("--all", log)
    assert short.stdout.count("batch-epoch") == 20
    assert "39 more of the same kinds not shown" in short.stdout
    assert long.stdout.count("batch-epoch") == 59
    assert short.exit_code == long.exit_code == 1


def test_what_is_not_kafkas_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "letter.txt", tmp_path / "nowhere"):
        result = run(path)
        assert result.exit_code == 2
        assert result.stderr.startswith("kraftline: ")
        assert result.stdout == ""


def test_wrong_use_ends_with_2() -> None:
    assert run().exit_code == 2
    assert run("--format", "xml", TOPICS).exit_code == 2


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "kraftline verify --first" in result.stdout


def test_the_installed_command_gives_the_same_exit_codes(tmp_path: Path) -> None:
    partition = copy(TOPICS / "broker-gzip-0", tmp_path)
    command = [sys.executable, "-c", "from kraftline.cli.main import main; main()", "verify"]
    assert subprocess.run([*command, str(partition)], capture_output=True).returncode == 0
    flip(partition / LOG, 100)
    done = subprocess.run([*command, str(partition)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "batch-crc" in done.stdout
    assert done.stderr == ""
