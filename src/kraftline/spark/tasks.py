"""Work that the driver hands to tasks, a list of things to do each, and what comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from kraftline.errors import KraftlineError, NotKafka
from kraftline.spark.workers import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    frame = frame_of_tasks(spark, work, do, schema)
    with in_words():
        return frame.toArrow().cast(schema)


def frame_of_tasks(
    spark: SparkSession,
    work: Sequence[Sequence[T]],
    do: Callable[[Sequence[T]], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """The rows that tasks give, one for each list of `work`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from do(work[number])
        settle()

    # A range of so many partitions is the one frame that has exactly one row in each.
    return spark.range(0, len(work), 1, len(work)).mapInArrow(task, from_arrow_schema(schema))


@contextmanager
def in_words(folder: str | None = None) -> Iterator[None]:
    """What went wrong in a task as an error of its own, without Spark's traces around it."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        said = _last_error(str(error))
        if said is None:
            raise
        kind, reason = said
        if kind == "NotKafka":
            raise NotKafka(reason) from error
        where = f"{folder}: " if folder and folder not in reason else ""
        raise KraftlineError(f"{where}{reason}") from error


_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+): (.*)$", re.MULTILINE)


def _last_error(text: str) -> tuple[str, str] | None:
    """The name and the words of the exception that a Python trace ends with."""
    trace = text.rpartition("Traceback (most recent call last)")[2]
    trace = trace.partition("=== Streaming Query ===")[0]
    found = _ERROR.findall(trace)
    return found[-1] if found else None


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
