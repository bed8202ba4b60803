"""`python -m benchmarks`: make inputs, let us and the rivals take turns, print and write tables."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console

from benchmarks import data, machine, memory, metadata, report
from benchmarks.contest import settle
from benchmarks.inputs import Maker
from benchmarks.plan import QUICK, Line, Peak, Plan, Sizes

GROUPS: dict[str, Callable[[Plan], Iterator[Line]]] = {
    "data-columns": data.columns,
    "parquet": data.parquet,
    "metadata": metadata.decoded,
    "jsonl": metadata.lines,
    "small": metadata.small,
}
RESULT = machine.CHECKOUT / "docs" / "benchmarks.md"


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, one round: does everything still run?")
@click.option("--only", multiple=True, type=click.Choice([*GROUPS, "memory"]))
@click.option("--rounds", type=click.IntRange(min=1), help="Of each contest [default: 3].")
@click.option("--keep", is_flag=True, help="Leave the inputs where they were made.")
def main(quick: bool, only: tuple[str, ...], rounds: int | None, keep: bool) -> None:
    """Kraftline beside real Kafka and pyarrow. A full run writes docs/benchmarks.md.

    Inputs (3 GB) are made below $KRAFTLINE_BENCH_DIR, or the system's directory for such things.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    described = machine.describe()
    root = Path(tempfile.mkdtemp(prefix="kraftline-", dir=os.environ.get("KRAFTLINE_BENCH_DIR")))
    settle(root)
    plan = Plan(Maker(root), QUICK if quick else Sizes(), rounds or (1 if quick else 3))
    lines: list[Line] = []
    peaks: list[Peak] = []
    try:
        for name, group in GROUPS.items():
            if not only or name in only:
                for line in group(plan):
                    lines.append(line)
                    console.print(" · ".join(report.row(line)), style="dim")
        if not only or "memory" in only:
            peaks += memory.peaks(plan)
    finally:
        if keep:
            console.print(f"inputs: {root}")
        else:
            shutil.rmtree(root)
    if lines:
        report.print_lines(console, lines)
    if peaks:
        report.print_peaks(console, peaks)
    if not quick and not only:
        text = report.markdown(lines, peaks, plan.notes, described, plan.rounds, plan.kafka_start())
        RESULT.write_text(text)
        console.print(f"written: {RESULT.relative_to(machine.CHECKOUT)}")


if __name__ == "__main__":
    main()
