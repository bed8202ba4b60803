"""`kraftline dump --follow`: how it goes on, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from tests.cli.dumping import batch, rows, run


def test_follow_goes_on_into_the_next_segment(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = folder / f"{0:020}.log", folder / f"{2:020}.log"
    first.write_bytes(batch(0))
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftline", "dump", "--follow", "--format", "jsonl", folder],
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["offset"] == 0
        with first.open("ab") as file:
            half = batch(1)
            file.write(half[:30])
            file.flush()
            os.fsync(file.fileno())
            file.write(half[30:])
        assert json.loads(process.stdout.readline())["offset"] == 1
        second.write_bytes(batch(2))
        row = json.loads(process.stdout.readline())
        assert (row["offset"], row["file"]) == (2, str(second))
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def test_follow_ends_at_the_last_offset_that_is_wanted(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch(0) + batch(1) + batch(2))
    assert [row["offset"] for row in rows(folder, "--follow", "--to-offset", 2)] == [0, 1, 2]
    assert [row["offset"] for row in rows(folder, "--follow", "--to-offset", 1)] == [0, 1]


@pytest.mark.parametrize(
    "name", [f"{5:020}-{1:010}.checkpoint", "copy.bin", f"{0:020}.log.deleted"]
)
def test_follow_refuses_what_will_not_grow(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(batch(0))
    (tmp_path / f"{0:020}.log").write_bytes(batch(0))
    result = run(tmp_path / name, "--follow")
    assert isinstance(result.exception, NotKafka)
    assert str(tmp_path / name) in str(result.exception)


def test_follow_is_ended_with_control_c_without_a_word(tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(batch(0))
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftline", "dump", "--follow", "--format", "jsonl", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["offset"] == 0
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10) == (b"", b"")
    assert process.returncode == 130
