"""All that a node does, beside real Kafka: `python -m benchmarks.node`, which writes the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from benchmarks.machine import describe

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-node.md"
_INTRO = """\
# Benchmarks: the node

Kraftline's node beside real Kafka 4.3.1, the same client and the same work for both, one after the
other in every round: `python -m benchmarks.node`. Written by the run; do not edit.
"""
_PARTS = {
    "Start and memory": ("node_start", "best of {rounds} starts; memory is what is resident"),
    "The way of the data": (
        "node_data",
        "Kafka's own `kafka-producer-perf-test`, and a consumer of assigned partitions with the "
        "settings of `kafka-consumer-perf-test`, MB/s; round trips with confluent-kafka, acks=all; "
        "the best of {rounds} rounds, and what the brokers' processes spent on it",
    ),
    "Transactions": (
        "transactions",
        "transactions of 100 records, one after the other, with confluent-kafka and with Kafka's "
        "own producer; of ten records and an offset of a group; the best of {rounds} rounds",
    ),
    "What it tells": ("node_metadata", "best of {rounds} rounds over one connection"),
}


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(rounds: int) -> None:
    """Start and memory, throughput and answers, beside real Kafka."""
    machine = describe()
    page = [_INTRO]
    for title, (name, said) in _PARTS.items():
        command = [sys.executable, "-m", f"benchmarks.{name}", "--rounds", str(rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(f"{title}\n{done.stdout}", flush=True)
        rows = [line.rstrip() for line in done.stdout.splitlines() if line.startswith("|")]
        page += [
            f"## {title}",
            "",
            f"{said[0].upper()}{said[1:].format(rounds=rounds)}.",
            "",
            *rows,
            "",
        ]
    page += ["## Machine", "", "| | |", "|---|---|"]
    page += [f"| {key} | {value} |" for key, value in machine.items()]
    PAGE.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
