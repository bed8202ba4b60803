"""Work that the driver hands to tasks, a list of things to do each, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def run_tasks(
    spark: SparkSession,
    work: Sequence[Sequence[T]],
    do: Callable[[Sequence[T]], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
) -> pa.Table:
    """One task for each list of `work`; the rows that they give, which must be few."""
    if not work:
        return schema.empty_table()
    from pyspark.sql.pandas.types import from_arrow_schema

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from do(work[number])

    # A range of so many partitions is the one frame that has exactly one row in each.
    frame = spark.range(0, len(work), 1, len(work)).mapInArrow(task, from_arrow_schema(schema))
    return frame.toArrow().cast(schema)


def shared_out(things: Iterable[T], weight: Callable[[T], int], tasks: int) -> list[list[T]]:
    """Lists of about the same weight, at most so many; what was together stays together."""
    listed = list(things)
    total = sum(map(weight, listed))
    out: list[list[T]] = []
    done = 0
    for thing in listed:
        if not out or done * tasks >= total * len(out):
            out.append([])
        out[-1].append(thing)
        done += weight(thing)
    return out
