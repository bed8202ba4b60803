"""`make soak`: every test with its full counts, and what came of it in docs/soak.md.

Tests that need a live Kafka have no counts; `make test` and `make oracle` run them.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "soak.md"
# With the interpreted kernel only what asks it: nodes and Spark would wait for it for hours.
KERNELS: dict[str, list[str]] = {
    "compiled": ["tests"],
    "interpreted": ["tests/schema", "tests/records", "tests/storage", "tests/raft"],
}


def main() -> int:
    lines = []
    failed = False
    for kernel, tests in KERNELS.items():
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope"]
        with subprocess.Popen(
            [*command, "-m", "not oracle", *tests],
            env=os.environ | {"KRAFTLINE_SOAK": "1", "KRAFTLINE_KERNEL": kernel},
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
        places = ", ".join(f"`{each}`" for each in tests)
        lines.append(f"| {kernel} | {places} | {summary.strip('= ')} | {minutes:.1f} min |")
        failed |= running.returncode != 0
        _write(lines)
    return int(failed)


def _write(lines: list[str]) -> None:
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    PAGE.write_text(
        "# Soak\n\nThe last run of `make soak`: tests, property tests and fuzzing with their full "
        "counts (ten\ntimes those of `make test`), with both kernels.\n\n"
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores.\n\n"
        "| kernel | tests | outcome | time |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
