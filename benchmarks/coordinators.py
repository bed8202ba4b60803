"""Groups, transactions and compaction beside real Kafka: `python -m benchmarks.coordinators`.

It writes the page."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.parts import write_page

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-coordinators.md"
_INTRO = """\
# Benchmarks: the coordinators

Kraftline's node beside real Kafka 4.3.1, the same client and the same work for both, one after the
other in every round: `python -m benchmarks.coordinators`. Written by the run; do not edit.
"""
_PARTS = {
    "Offsets": (
        "groups",
        "commits of 100 groups; rebalances; loading a partition of the offsets topic; the best of "
        "{rounds} rounds",
    ),
    "Rebalances": (
        "rebalance",
        "fifty members over the bare protocol, of both kinds; the best of {rounds} rounds",
    ),
    "Transactions": (
        "transactions",
        "transactions of 100 records, one after the other, with confluent-kafka and with Kafka's "
        "own producer; of ten records and an offset of a group; the best of {rounds} rounds",
    ),
    "Compaction": (
        "cleaner",
        "one thread of each one's cleaner over the same log, one record in ten the last of its "
        "key; the best of {rounds} rounds",
    ),
}


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(rounds: int) -> None:
    """Offsets, rebalances, transactions and compaction, beside real Kafka."""
    write_page(PAGE, _INTRO, _PARTS, rounds)


if __name__ == "__main__":
    main()
