"""Topic segments in Spark beside Spark's own Kafka source: `python -m benchmarks.segments_spark`.

A real producer fills a topic of a real broker. One warm session counts its records and adds up the
lengths of their values: through `kafka_segments` from the broker's files, through Spark's Kafka
source from the broker, and from Parquet of the same rows.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import kraftline.spark
from benchmarks.kafka_source import TOPIC, VALUE_BYTES, broker_with, connector
from benchmarks.machine import CHECKOUT, describe
from kraftline.spark.session import local_session

PAGE: Final = CHECKOUT / "docs" / "benchmarks-segments.md"
_SIZES: Final = (1_000_000, 5_000_000)
_QUICK: Final = (20_000, 100_000)
_HEAD: Final = ("records", "read by", "takes", "million/s", "beside us", "reach / aim")
_US: Final = "kafka_segments, value only"
_ALL: Final = "kafka_segments, every column"
_KAFKA: Final = "Spark's Kafka source"
_PARQUET: Final = "spark.read.parquet"


@dataclass(frozen=True)
class Result:
    records: int
    seconds: dict[str, float]

    def rows(self) -> list[tuple[str, ...]]:
        """A row per reader; a ratio above 1 says how many times longer than ours it takes."""
        us = self.seconds[_US]
        goals = {_KAFKA: "4 / 8", _PARQUET: "0.25 / 0.5"}
        return [
            (
                f"{self.records:,}",
                name,
                f"{taken:.2f} s",
                f"{self.records / taken / 1e6:.2f}",
                "" if name == _US else f"{taken / us:.2f}x",
                goals.get(name, ""),
            )
            for name, taken in self.seconds.items()
        ]


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, one round: does everything still run?")
@click.option("--rounds", type=click.IntRange(min=1), help="Of each size [default: 5].")
def main(quick: bool, rounds: int | None) -> None:
    """kafka_segments beside Spark's Kafka source and Parquet. A full run writes a page of docs/."""
    console = Console()
    described = describe()
    version, jars = connector()
    described["Spark's Kafka source"] = version
    settings: dict[str, Any] = {"spark.jars": ",".join(map(str, jars))}
    spark = local_session("benchmark", **settings)
    described["Spark"] = spark.version
    kraftline.spark.register(spark)
    count = rounds or (1 if quick else 5)
    results = [measured(spark, size, count) for size in (_QUICK if quick else _SIZES)]
    spark.stop()
    table = Table(*_HEAD, title="count and sum(length(value)), warm session")
    for result in results:
        for row in result.rows():
            table.add_row(*row)
    console.print(table)
    if not quick:
        PAGE.write_text(_page(results, described, count))
        console.print(f"written: {PAGE.relative_to(CHECKOUT)}")


def measured(spark: SparkSession, records: int, rounds: int) -> Result:
    """The best of some rounds, in each of which every reader has its turn; one more to warm up."""
    with broker_with(records) as kafka:
        scratch = Path(tempfile.mkdtemp(prefix="kraftline-parquet-"))
        try:
            data, rows = str(kafka.data(1)), str(scratch / "rows")
            segments = spark.read.format("kafka_segments").option("topics", TOPIC)
            segments.load(data).write.parquet(rows)
            readers: dict[str, Callable[[], DataFrame]] = {
                _US: lambda: (
                    spark.read.format("kafka_segments")
                    .option("topics", TOPIC)
                    .schema("value binary")
                    .load(data)
                ),
                _ALL: lambda: segments.load(data),
                _KAFKA: lambda: (
                    spark.read.format("kafka")
                    .option("kafka.bootstrap.servers", kafka.bootstrap)
                    .option("subscribe", TOPIC)
                    .load()
                ),
                _PARQUET: lambda: spark.read.parquet(rows),
            }
            best = dict.fromkeys(readers, float("inf"))
            for turn in range(rounds + 1):
                for name, reader in readers.items():
                    taken = _timed(reader, records)
                    if turn:
                        best[name] = min(best[name], taken)
            return Result(records, best)
        finally:
            shutil.rmtree(scratch)


def _timed(reader: Callable[[], DataFrame], records: int) -> float:
    start = time.perf_counter()
    row = reader().agg(F.count("*"), F.sum(F.length("value"))).collect()[0]
    taken = time.perf_counter() - start
    if tuple(row) != (records, records * VALUE_BYTES):
        raise AssertionError(f"{tuple(row)}: quick and wrong would not count")
    return taken


def _page(results: Sequence[Result], machine: dict[str, str], rounds: int) -> str:
    lines = [
        "# Benchmarks: segments in Spark",
        "",
        f"A topic of {VALUE_BYTES}-byte values that a real producer wrote to a real broker, counted"
        " and",
        "summed up in one warm session: from the broker's files, from the broker, and from",
        "Parquet (Snappy, as Spark writes it) of the same rows. Best of",
        f"{rounds} rounds in which all take turns: `python -m benchmarks.segments_spark`.",
        "Spark asks a Python source for every column unless a schema names fewer; its Kafka source",
        "and Parquet leave out by themselves what a query does not need. Written by the run; do",
        "not edit.",
        "",
        f"| {' | '.join(_HEAD)} |",
        "|---" * len(_HEAD) + "|",
        *(f"| {' | '.join(row)} |" for result in results for row in result.rows()),
        "",
        "| machine |  |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
