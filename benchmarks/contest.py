"""Times commands: round after round, one after the other, the best of each counts.

A command's own report (the last line of `python -m benchmarks.work …`) splits off the time for
the work itself from that for starting an interpreter and importing libraries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

KRAFTLINE = str(Path(sys.executable).with_name("kraftline"))


@dataclass(frozen=True)
class Timing:
    """One process: seconds in all, for its work (without its start) where that is known, on the
    processor; peak memory in bytes; rows that it came to, where it says so."""

    whole: float
    cpu: float
    peak: int
    work: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Contender:
    """A command, and where its output goes: a file, a pipe that is read, or nowhere."""

    command: Sequence[str]
    output: Path | None = None
    pipe: bool = False
    reports: bool = False


def ours(what: str, *args: object) -> Contender:
    """Work done through the library, in a process of its own that reports on itself."""
    command = [sys.executable, "-m", "benchmarks.work", what, *map(str, args)]
    return Contender(command, reports=True)


def settle(root: Path) -> None:
    """Make the environment that of an installed package on a plain shell: byte code is kept (below
    `root`, not in the checkout), output is buffered."""
    os.environ["PYTHONPYCACHEPREFIX"] = str(root / "bytecode")
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)


def contest(contenders: Mapping[str, Contender], rounds: int) -> dict[str, Timing]:
    """The best of `rounds` rounds of each; in a round each runs once, in turn."""
    seen: dict[str, list[Timing]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            seen[name].append(run(contender))
    return {name: _best(timings) for name, timings in seen.items()}


def _best(timings: list[Timing]) -> Timing:
    works = [timing.work for timing in timings if timing.work is not None]
    return Timing(
        whole=min(timing.whole for timing in timings),
        cpu=min(timing.cpu for timing in timings),
        peak=max(timing.peak for timing in timings),
        work=min(works) if works else None,
        rows=timings[0].rows,
    )


def run(contender: Contender) -> Timing:
    if contender.output is not None:
        with contender.output.open("wb") as file:
            return _run(contender, file)
    if contender.pipe or contender.reports:
        return _run(contender, subprocess.PIPE)
    return _run(contender, subprocess.DEVNULL)


def _run(contender: Contender, output: int | IO[bytes]) -> Timing:
    start = time.perf_counter()
    process = subprocess.Popen(contender.command, stdin=subprocess.DEVNULL, stdout=output)
    said = process.stdout.read() if process.stdout is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    whole = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdout is not None:
        process.stdout.close()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(contender.command))
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    if not contender.reports:
        return Timing(whole, cpu, peak)
    report = json.loads(said)
    return Timing(whole, cpu, peak, report["seconds"], report["rows"])
