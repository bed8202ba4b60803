"""`kraftline history build` as a person uses it: words, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from kraftline.cli import history_build
from tests.spark.building import names, topics_log, write_log


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> partial[Result]:
    """The command in this process, with the session of all tests."""
    monkeypatch.setattr(history_build, "_session", lambda master, paths, quiet: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    return partial(CliRunner().invoke, history_build.command)


def test_it_says_what_was_built_and_then_that_nothing_is_new(
    run: partial[Result], tmp_path: Path
) -> None:
    write_log(tmp_path / "node", topics_log(0, 5))
    args = ["--from", str(tmp_path / "node"), "--to", str(tmp_path / "lake"), "--cluster-id", "c"]
    first = run(args)
    assert first.exit_code == 0, first.output
    assert "build 1 of c: 5 records, 10 rows of history" in first.stdout
    assert "read records: 5 rows" in first.stderr
    second = run([*args, "--quiet"])
    assert second.exit_code == 0
    assert second.stdout.endswith("nothing new from c\n")
    assert second.stderr == ""


def test_several_paths_may_follow_one_option_and_a_loser_is_told_of(
    run: partial[Result], tmp_path: Path
) -> None:
    write_log(tmp_path / "a", topics_log(0, 12))
    write_log(tmp_path / "b", topics_log(0, 8), topics_log(8, 2, epoch=2))
    paths = ["--from", str(tmp_path / "a"), str(tmp_path / "b")]
    found = run([*paths, "--to", str(tmp_path / "lake"), "--cluster-id", "c"])
    assert found.exit_code == 1
    [line] = [line for line in found.stderr.splitlines() if "quarantine" in line]
    assert str(tmp_path / "a") in line
    assert "higher leader epoch" in line
    assert len(names(tmp_path / "lake")) == 10


def test_a_directory_of_nobody_needs_a_cluster_id(run: partial[Result], tmp_path: Path) -> None:
    write_log(tmp_path / "node", topics_log(0, 5))
    found = run(["--from", str(tmp_path / "node"), "--to", str(tmp_path / "lake")])
    assert "--cluster-id" in str(found.exception)
    assert not (tmp_path / "lake").exists()


def test_a_wrong_path_is_wrong_use_and_starts_no_java(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kraftline", "history", "build"]
    args = ["--from", str(tmp_path / "none"), "--to", str(tmp_path / "lake")]
    done = subprocess.run([*command, *args], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"kraftline: {tmp_path}/none: there is no such file or directory\n"


def test_control_c_leaves_no_build_behind(tmp_path: Path) -> None:
    write_log(tmp_path / "node", topics_log(0, 50))
    command = [sys.executable, "-m", "kraftline", "history", "build", "--cluster-id", "c"]
    args = ["--from", str(tmp_path / "node"), "--to", str(tmp_path / "lake")]
    process = subprocess.Popen(
        [*command, *args], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("read records"):  # the tables are being made
            break
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130
    assert "Traceback" not in rest
    left = [file for file in (tmp_path / "lake").rglob("*.parquet") if "builds" not in str(file)]
    assert left == []
