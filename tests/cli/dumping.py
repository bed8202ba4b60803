"""Runs `kraftline dump`, and makes small logs for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kraftline.cli.dump import command
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from tests.fixture_files import FIXTURES

METADATA = FIXTURES / "metadata_4_3/data/node-1/__cluster_metadata-0"
TOPICS = FIXTURES / "topics_4_3/data/node-1"


def run(*args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


def rows(*args: object) -> list[dict[str, Any]]:
    result = run(*args, "--format", "jsonl")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def cli(*args: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "kraftline", *map(str, args)], capture_output=True, check=False
    )


def batch(offset: int) -> bytes:
    return build_batch([Record(offset, 1000 + offset, b"key", b"value")], base_offset=offset)


def write_log(folder: Path, records: list[Record]) -> Path:
    log = folder / f"{0:020}.log"
    log.write_bytes(build_batch(records))
    return log
