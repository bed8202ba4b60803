"""What administrators and tests ask of a node, beside real Kafka: `python -m benchmarks.admin`,
which writes the page.

Both brokers run at once and get the same work in turn from the same client, round after round;
the best round of each counts. What real Kafka has no counterpart for is held against its goal.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks import admin_acls
from benchmarks.admin_work import Administrator
from benchmarks.beside import Broker, Measured, Seen, both, show
from benchmarks.contest import settle
from benchmarks.machine import describe

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-admin.md"
_INTRO = """\
# Benchmarks: administration

Kraftline's node beside real Kafka 4.3.1, the same client (confluent-kafka) and the same work for
both, one after the other in every round: `python -m benchmarks.admin`. Written by the run; do not
edit.
"""
_BESIDE = """\
{best}, and what the brokers' processes spent on it. Topics go a hundred to a
request. They are usable once every partition of the last request answers for its offsets. A config
change is described from the moment its answer is there: one round trip at least (goal: p99 below
10 ms).
"""
_ALONE = """\
The check of ACLs is the authorizer's own function, called directly; the fixture is that of the
first test in a new process, imports included.
"""


def measure(rounds: int, sizes: tuple[int, ...], changes: int, heap: str) -> Seen:
    seen = Seen()
    with both(heap) as (theirs, mine):
        for turn in range(rounds):
            for size in (*sizes, None):
                for found, broker in ((seen.kafka, theirs), (seen.us, mine)):
                    for name, measured in _work(broker, turn, size, changes):
                        found.setdefault(name, []).append(measured)
    return seen


def _work(
    broker: Broker, turn: int, size: int | None, changes: int
) -> Iterator[tuple[str, Measured]]:
    administrator = Administrator(broker)
    if size is None:
        return administrator.config_changes(f"changed-{turn}", changes)
    return administrator.topics(size, f"made-{turn}")


def measure_alone(rounds: int, nodes: int) -> Table:
    found = Table("work", "us", "goal", box=MARKDOWN)
    new, again = admin_acls.check()
    found.add_row(f"check among {admin_acls.COUNT:,} ACLs, never asked before", _us(new), "20 µs")
    found.add_row(f"check among {admin_acls.COUNT:,} ACLs, asked before", _us(again), "20 µs")
    with tempfile.TemporaryDirectory() as directory:
        settle(Path(directory))
        _numbers("ready")  # compiles
        ready = min(_numbers("ready")[0] for _ in range(max(rounds, 3)))
        took, half, most, files, threads = _numbers("nodes", "--count", str(nodes))
    found.add_row("pytest fixture ready", f"{ready:.0f} ms", "300 ms")
    found.add_row(f"{nodes} nodes one after the other", f"{took:.1f} s", "")
    found.add_row("one of them ready, p50; p99", f"{half:.0f}; {most:.0f} ms", "300 ms")
    found.add_row("files; threads left by them", f"{files:.0f}; {threads:.0f}", "0; 0")
    return found


def _us(value: float) -> str:
    return f"{value:.1f} µs"


def _numbers(*arguments: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.admin_fixture", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr)
    return [float(word) for word in done.stdout.split()]


def _rows(table: Table) -> list[str]:
    console = Console(width=140)
    with console.capture() as said:
        console.print(table)
    return [line.rstrip() for line in said.get().splitlines() if line.startswith("|")]


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--topics", default=(250, 1000), show_default=True, multiple=True)
@click.option("--changes", default=2000, show_default=True, type=click.IntRange(min=2))
@click.option("--nodes", default=100, show_default=True, type=click.IntRange(min=2))
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, topics: tuple[int, ...], changes: int, nodes: int, heap: str) -> None:
    """Topics, configs, ACLs and nodes for tests, beside real Kafka."""
    machine = describe()
    beside = measure(rounds, topics, changes, heap).table(digits=2)
    alone = measure_alone(rounds, nodes)
    show(beside)
    show(alone)
    best = f"The best of {rounds} rounds" if rounds > 1 else "One round, with a young JVM"
    page = [_INTRO, "## Beside real Kafka", "", _BESIDE.format(best=best), *_rows(beside), ""]
    page += ["## Alone", "", _ALONE, *_rows(alone), ""]
    page += ["## Machine", "", "| | |", "|---|---|"]
    page += [f"| {key} | {value} |" for key, value in machine.items()]
    PAGE.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
