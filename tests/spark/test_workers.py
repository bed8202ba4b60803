"""Spark's Python workers: what they keep between tasks is not looked through for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kraftline.spark.tasks import run_tasks

_COUNTS = pa.schema([pa.field("looked_through", pa.int64()), pa.field("frozen", pa.int64())])


def _count(_: Sequence[int]) -> Iterator[pa.RecordBatch]:
    rows = {"looked_through": [len(gc.get_objects())], "frozen": [gc.get_freeze_count()]}
    yield pa.RecordBatch.from_pydict(rows, _COUNTS)


def test_spark_workers_pass_over_what_modules_brought(spark: SparkSession) -> None:
    slots = spark.sparkContext.defaultParallelism
    work = [[number] for number in range(4 * slots)]
    run_tasks(spark, work, _count, _COUNTS)
    later = run_tasks(spark, work, _count, _COUNTS).to_pylist()
    for row in later:
        assert row["frozen"] > 10 * row["looked_through"]
