"""A page of benchmarks, made of the tables that several of them print."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.machine import describe


def write_page(page: Path, intro: str, parts: Mapping[str, tuple[str, str]], rounds: int) -> None:
    """Run the modules of `parts`, by title: each has a name, and what is said of its table."""
    machine = describe()
    lines = [intro]
    for title, (name, said) in parts.items():
        command = [sys.executable, "-m", f"benchmarks.{name}", "--rounds", str(rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(f"{title}\n{done.stdout}", flush=True)
        rows = [line.rstrip() for line in done.stdout.splitlines() if line.startswith("|")]
        said = said.format(rounds=rounds)
        lines += [f"## {title}", "", f"{said[0].upper()}{said[1:]}.", "", *rows, ""]
    lines += ["## Machine", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in machine.items()]
    page.write_text("\n".join(lines) + "\n")
