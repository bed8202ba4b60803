"""All that a node does, beside real Kafka: `python -m benchmarks.node`, which writes the page."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.parts import write_page

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
    "What it tells": ("node_metadata", "best of {rounds} rounds over one connection"),
}


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(rounds: int) -> None:
    """Start and memory, throughput and answers, beside real Kafka."""
    write_page(PAGE, _INTRO, _PARTS, rounds)


if __name__ == "__main__":
    main()
