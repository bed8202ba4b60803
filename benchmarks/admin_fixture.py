"""How soon a test has its node: `python -m benchmarks.admin_fixture ready|nodes`.

- `ready`: milliseconds of the set-up of the first test of a process that asks for
  `kafka_bootstrap`, with everything that has to be imported for it.
- `nodes`: many nodes one after the other in one process: the seconds of all, the milliseconds
  until one serves (p50 and p99), and how many more files and threads there are than before.

Each prints its numbers, in a line: the process must be a new one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import click
import pytest

import kraftline

_TEST: Final = "def test_it(kafka_bootstrap):\n    assert kafka_bootstrap\n"


@click.group()
def main() -> None:
    """Nodes for tests."""


@main.command()
def ready() -> None:
    """Milliseconds until a test has its node."""
    seen = _SetUps()
    with tempfile.TemporaryDirectory() as directory:
        test = Path(directory, "test_it.py")
        test.write_text(_TEST)
        options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", directory]
        with contextlib.redirect_stdout(sys.stderr):
            status = pytest.main([*options, str(test)], plugins=[seen])
    if status or len(seen.seconds) != 1:
        raise click.ClickException(f"pytest ended with {status}")
    print(seen.seconds[0] * 1000)


@main.command()
@click.option("--count", type=click.IntRange(min=2), default=100)
def nodes(count: int) -> None:
    """What many nodes take, and what they leave behind."""
    with kraftline.Node():  # imports
        times = []
    gc.collect()
    before = _held()
    began = time.perf_counter()
    for _ in range(count):
        start = time.perf_counter()
        with kraftline.Node():
            times.append((time.perf_counter() - start) * 1000)
    took = time.perf_counter() - began
    gc.collect()
    files, threads = (now - then for now, then in zip(_held(), before, strict=True))
    cuts = statistics.quantiles(times, n=100)
    print(took, cuts[49], cuts[98], files, threads)


class _SetUps:
    """A plugin of pytest: what each test's fixtures took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self.seconds.append(report.duration)


def _held() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), threading.active_count()


if __name__ == "__main__":
    main()
