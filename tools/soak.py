"""`make soak`: every test with its full counts, and what came of it in docs/soak.md."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent.parent / "docs" / "soak.md"


class Part(NamedTuple):
    what: str
    marked: str  # as pytest's -m has it
    kernel: str
    tests: tuple[str, ...] = ("tests",)


PARTS = (
    Part("all that needs no Kafka", "not oracle", "compiled"),
    # Only what asks the kernel: nodes and Spark would wait for it for hours.
    Part(
        "files and formats",
        "not oracle",
        "interpreted",
        ("tests/schema", "tests/records", "tests/storage", "tests/raft"),
    ),
    # `make test` runs the others that need a Kafka, and they have no counts.
    Part("beside a live Kafka, what `make test` leaves out", "oracle and soak", "compiled"),
)


def main() -> int:
    lines = []
    failed = False
    for part in PARTS:
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope"]
        with subprocess.Popen(
            [*command, "-m", part.marked, *part.tests],
            env=os.environ | {"KRAFTLINE_SOAK": "1", "KRAFTLINE_KERNEL": part.kernel},
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            said = []
            for line in running.stdout:
                print(line, end="", flush=True)
                said.append(line)
        summary = re.findall(r"^.*\b(?:passed|failed|error)\b.*$", "".join(said), re.M)[-1]
        minutes = (time.monotonic() - start) / 60
        lines.append(f"| {part.what} | {part.kernel} | {summary.strip('= ')} | {minutes:.1f} min |")
        failed |= running.returncode != 0
        _write(lines)
    return int(failed)


def _write(lines: list[str]) -> None:
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    PAGE.write_text(
        "# Soak\n\nThe last run of `make soak`: tests, property tests and fuzzing with their full "
        "counts (ten\ntimes those of `make test`), with both kernels, and beside real Kafka.\n\n"
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores.\n\n"
        "| tests | kernel | outcome | time |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
