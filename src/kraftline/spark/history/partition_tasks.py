"""All that is made of partitions: brought together by topic, a bucket of topics at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import replace

from kraftline.spark.frames import frame_of
from kraftline.spark.history import exchange
from kraftline.spark.history.around import Around
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.out import tables_out
from kraftline.spark.history.partitions import Partitions
from kraftline.spark.record_table import records_table
from kraftline.spark.tasks import frame_of_tasks, in_words, shared_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS: Final = 1_000_000
# What a task works on at a time.
_BUCKET_ROWS: Final = 100_000
_OPEN_ROWS: Final = 10_000  # in a file of open rows, about


def write_partitions(
    spark: SparkSession,
    root: str,
    records: Iterable[RecordFile],
    arounds: Mapping[str, Around],
    opened: Iterable[OpenFile],
    topics: pa.Table,
) -> list[bytes]:
    """The tables that are made of partitions; `topics` is what is said of those. The files that
    were written, for `added_by_table`."""
    mine = [file for file in records if file.type in exchange.PARTITION_TYPES]
    going_on = _going_on(opened, arounds)
    rows = topics.num_rows + sum(file.rows for file in mine)
    if not rows and not going_on:
        return []
    slots = spark.sparkContext.defaultParallelism
    count = max(4 * slots, rows // _BUCKET_ROWS)
    known = spark.sparkContext.broadcast(dict(arounds))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tables_out(root) as out:
            for chunks in _buckets(batches):
                Partitions(known.value, out).replay(exchange.in_order(chunks))
        yield pa.RecordBatch.from_arrays([pa.array(out.said(), pa.binary())], ["said"])

    frame = _chunks(spark, root, [*mine, *going_on], topics, count)
    tasks = max(slots, rows // _TASK_ROWS)
    brought = frame.repartition(tasks, "bucket").sortWithinPartitions("bucket")
    with in_words(root):
        said = brought.mapInArrow(write, "said binary").toArrow()
    known.unpersist()
    texts: list[bytes] = said.column(0).to_pylist()
    return texts


def _going_on(opened: Iterable[OpenFile], arounds: Mapping[str, Around]) -> list[OpenFile]:
    """Files with open rows of partitions, with the leg that goes on."""
    legs = {
        name: leg
        for name, around in arounds.items()
        for leg, known in around.legs.items()
        if known.leg.continued
    }
    return [
        replace(file, leg=legs[file.cluster_id])
        for file in opened
        if file.table in ("partitions", "health") and file.cluster_id in legs
    ]


def _chunks(
    spark: SparkSession,
    root: str,
    files: Sequence[RecordFile | OpenFile],
    said: pa.Table,
    count: int,
) -> DataFrame:
    """All rows as chunks of buckets."""

    def read(file: RecordFile | OpenFile) -> Iterator[pa.Table]:
        if isinstance(file, RecordFile):
            return exchange.records_said(f"{root}/{records_table().name}", file)
        return exchange.opened_said(f"{root}/{file.table}", file)

    def chunks(mine: Sequence[RecordFile | OpenFile]) -> Iterator[pa.RecordBatch]:
        for file in mine:
            for rows in read(file):
                yield from exchange.buckets(rows, count)

    slots = spark.sparkContext.defaultParallelism
    work = shared_out(files, lambda file: 1 + getattr(file, "rows", _OPEN_ROWS), 2 * slots)
    topics = pa.Table.from_batches(exchange.buckets(said, count), exchange.CHUNKS)
    frame = frame_of(spark, topics)
    return frame.union(frame_of_tasks(spark, work, chunks, exchange.CHUNKS)) if work else frame


def _buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """Chunks, those of a bucket together."""
    rows = (
        (bucket, chunk)
        for batch in batches
        for bucket, chunk in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for _, found in groupby(rows, key=itemgetter(0)):
        yield [chunk for _, chunk in found]
