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
KERNELS = {"compiled": {}, "interpreted": {"KRAFTLINE_KERNEL": "interpreted"}}


def main() -> int:
    lines = []
    failed = False
    for kernel, environment in KERNELS.items():
        start = time.monotonic()
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n",
                "2",
                "--dist",
                "loadscope",
                "-m",
                "not oracle",
            ],
            env=os.environ | {"KRAFTLINE_SOAK": "1"} | environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stdout)
        summary = re.findall(r"^.*\b(?:passed|failed|error)\b.*$", done.stdout, re.M)[-1]
        minutes = (time.monotonic() - start) / 60
        lines.append(f"| {kernel} | {summary.strip('= ')} | {minutes:.1f} min |")
        failed |= done.returncode != 0
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    PAGE.write_text(
        "# Soak\n\nThe last run of `make soak`: all tests, property tests and fuzzing with "
        "their full counts (ten times those of `make test`), with both kernels.\n\n"
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores.\n\n"
        "| kernel | outcome | time |\n|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
