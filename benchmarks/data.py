"""Data segments to Arrow columns: beside DumpLogSegments, and beside reading plain Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.contest import Contender, ours
from benchmarks.plan import Line, Plan, checked, kafka_reads
from benchmarks.rival import dump_command
from kraftline.records.record import Codec

KAFKA = "DumpLogSegments"


def columns(plan: Plan) -> Iterator[Line]:
    """Every column, checksums compared; the rival prints headers of records to /dev/null."""
    for codec in (Codec.NONE, Codec.ZSTD):
        name = "uncompressed" if codec is Codec.NONE else codec.name.lower()
        for size in plan.sizes.data:
            made = plan.maker.data(size, codec)
            if size == plan.sizes.data[0]:
                kafka_reads(made, metadata=False)
                if codec:
                    plan.notes.append(
                        f"{name} takes the batches to 1/{made.plain_size / made.size:.2f}."
                    )
            found = plan.contest(
                {
                    "one": ours("data_columns", made.path),
                    "kafka": Contender(dump_command(made.path, metadata=False)),
                    "all": ours("data_columns", made.path, all_threads()),
                }
            )
            kafka = plan.without_start(found["kafka"])
            for threads, us in ((1, found["one"]), (all_threads(), found["all"])):
                checked(made, us)
                work = f"{name} data to columns, {said_threads(threads)}"
                yield Line(
                    "data-columns", work, said_bytes(made.plain_size), us, KAFKA, kafka, 20, 60
                )


def parquet(plan: Plan) -> Iterator[Line]:
    """The columns that a Parquet file of the same rows has; files are in the page cache."""
    for size in plan.sizes.data:
        made, rows = plan.maker.data(size), plan.maker.parquet(size)
        for threads in (1, all_threads()):
            found = plan.contest(
                {
                    "us": ours("row_columns", made.path, threads),
                    "parquet": ours("parquet", rows.path, threads),
                }
            )
            checked(made, found["us"])
            checked(rows, found["parquet"])
            work = f"uncompressed data to rows, {said_threads(threads)}"
            yield Line(
                "parquet",
                work,
                said_bytes(made.plain_size),
                found["us"],
                "pyarrow, Parquet",
                found["parquet"],
                0.5,
                1,
            )


def said_bytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def all_threads() -> int:
    return min(os.cpu_count() or 2, 4)


def said_threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
