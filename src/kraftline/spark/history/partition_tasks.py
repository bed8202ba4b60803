"""All that is made of partitions: brought together by topic, a bucket of topics at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from kraftline.lake.tables import OPEN
from kraftline.metadata.loader.replay import without_collector
from kraftline.spark.frames import frame_of
from kraftline.spark.history import exchange
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.moments import Leg
from kraftline.spark.history.news import News, news_of
from kraftline.spark.history.out import TablesOut, tables_out
from kraftline.spark.history.partitions import Partitions
from kraftline.spark.history.thing_tasks import Found
from kraftline.spark.record_table import records_table
from kraftline.spark.tasks import frame_of_tasks, in_words, shared_out
from kraftline.spark.workers import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS: Final = 1_000_000
# More news than this is not told apart, nor brought to the driver: most partitions have some then.
_MUCH_NEWS: Final = 500_000
# What a task works on at a time.
_BUCKET_ROWS: Final = 100_000
_FEW_ROWS: Final = 12_500  # are not worth another bucket
# Of a row in a file of open rows, about; such a row costs as much as a tenth of a record.
_ROW_BYTES: Final = 12
_OPEN_ROWS: Final = 10
# In place of a bucket: what was written before rows came into buckets.
_WROTE: Final = -1


class Passing(Struct, frozen=True):
    """What open rows are passed on by: those without `news` of them are written as they are, the
    others and new records go into `count` buckets."""

    news: News
    count: int


class Passed(Struct, frozen=True):
    """`wrote` names the files of rows that were passed on, `chunks` are of all others."""

    wrote: list[bytes]
    chunks: pa.Table


NOTHING_PASSED: Final = Passed([], exchange.CHUNKS.empty_table())


def passing(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Iterable[OpenFile],
    heard: pa.Table | None,
) -> Passing | None:
    """None where there is nothing to pass on, or too much news for that."""
    rows = sum(file.rows for file in _of_partitions(records))
    if not _going_on(opened, legs) or rows > _MUCH_NEWS:
        return None
    return Passing(news_of(spark, root, records, legs, heard), _bucket_count(spark, rows))


def pass_on(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Iterable[OpenFile],
    by: Passing,
) -> Passed:
    """Pass on the rows that nothing happened to, before anything is replayed; in a thread of its
    own, which others should not wait for."""
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "passing on")
    reading = _Reading(root, by.count, by.news)
    frame = _chunks(spark, reading, _of_partitions(records), _going_on(opened, legs))
    with in_words(root):
        found = frame.toArrow()
    is_rows = pc.not_equal(found.column("bucket"), _WROTE)
    wrote = found.filter(pc.invert(is_rows)).column("rows").to_pylist()
    return Passed(wrote, found.filter(is_rows))


def write_partitions(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Iterable[OpenFile],
    things: Found,
    by: Passing | None,
    passed: Callable[[], Passed],
) -> list[bytes]:
    """The tables that are made of partitions; the files that were written, for
    `added_by_table`. `passed` waits for rows that are passed on."""
    mine, going_on = _of_partitions(records), _going_on(opened, legs)
    if by is not None and not things.covered_by(by.news):
        passed()  # for nothing
        by = None
    topics = things.topics(None if by is None else by.news)
    rows = topics.num_rows + sum(file.rows for file in mine)
    if not rows and not going_on:
        return []
    count = _bucket_count(spark, rows) if by is None else by.count
    chunks = pa.Table.from_batches(exchange.buckets(topics, count), exchange.CHUNKS)
    known = spark.sparkContext.broadcast(things.arounds)
    wrote: list[bytes] = []
    if by is not None:
        found = passed()
        wrote = found.wrote
        # A bucket is one row, so all of it is in one task without an exchange.
        brought = frame_of(spark, exchange.one_each(pa.concat_tables([chunks, found.chunks])))
    else:
        every = frame_of(spark, chunks)
        if mine or going_on:
            every = every.union(_chunks(spark, _Reading(root, count, None), mine, going_on))
        slots = spark.sparkContext.defaultParallelism
        tasks = slots * max(1, rows // _TASK_ROWS // slots)
        brought = every.repartitionById(tasks, "bucket").sortWithinPartitions("bucket")

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_collector(), tables_out(root) as out:
            for _, chunks in _buckets(batches):
                Partitions(known.value, out).replay(exchange.in_order(chunks))
        yield pa.RecordBatch.from_arrays([pa.array(out.said(), pa.binary())], ["said"])
        settle()

    with in_words(root):
        told = brought.mapInArrow(write, "said binary").toArrow()
    known.unpersist()
    return [*wrote, *told.column(0).to_pylist()]


def _of_partitions(records: Iterable[RecordFile]) -> list[RecordFile]:
    return [file for file in records if file.type in exchange.PARTITION_TYPES]


def _bucket_count(spark: SparkSession, rows: int) -> int:
    some = min(spark.sparkContext.defaultParallelism, 1 + rows // _FEW_ROWS)
    return max(some, rows // _BUCKET_ROWS)


def _going_on(opened: Iterable[OpenFile], legs: Mapping[str, Sequence[Leg]]) -> list[OpenFile]:
    """Files with open rows of partitions, with the leg that goes on."""
    continued = {name: leg for name, mine in legs.items() for leg in mine if leg.continued}
    return [
        replace(file, leg=leg.leg, committed_to=leg.committed_to or 0)
        for file in opened
        if file.table in ("partitions", "health") and (leg := continued.get(file.cluster_id))
    ]


class _Reading(Struct, frozen=True):
    """What tasks read by. Open rows without news are written again as they are, the others go into
    one of `count` buckets."""

    root: str
    count: int
    news: News | None

    def chunks(self, files: Sequence[RecordFile | OpenFile]) -> Iterator[pa.RecordBatch]:
        with tables_out(self.root) as out:
            for file in files:
                for rows in self._read(file, out):
                    yield from exchange.buckets(rows, self.count)
        said = out.said()
        if said:
            yield pa.RecordBatch.from_pydict(
                {"bucket": [_WROTE] * len(said), "rows": said}, exchange.CHUNKS
            )

    def _read(self, file: RecordFile | OpenFile, out: TablesOut) -> Iterator[pa.Table]:
        if isinstance(file, RecordFile):
            yield from exchange.records_said(f"{self.root}/{records_table().name}", file)
            return
        for rows in exchange.opened_rows(f"{self.root}/{file.table}", file):
            news = self._passed(file, rows, out)
            if news.num_rows:
                yield exchange.opened_said(news, file)

    def _passed(self, file: OpenFile, rows: pa.Table, out: TablesOut) -> pa.Table:
        """The rows that there may be news of; all others are written."""
        if self.news is None:
            return rows
        has_news = pa.array(self.news.of_rows(file.cluster_id, rows))
        rest = rows.filter(pc.invert(has_news))
        committed = pc.less(rest.column("valid_from_offset"), file.committed_to)
        at = rest.schema.get_field_index("committed")
        for batch in rest.set_column(at, "committed", committed).to_batches():
            out.write(file.table, file.cluster_id, OPEN, batch)
        return rows.filter(has_news)


def _chunks(
    spark: SparkSession, by: _Reading, records: Sequence[RecordFile], opened: Sequence[OpenFile]
) -> DataFrame:
    """The rows of files as chunks of buckets, and the files that were written on the way."""
    slots = spark.sparkContext.defaultParallelism
    files: list[RecordFile | OpenFile] = [*records, *opened]
    work = shared_out(files, _weight, 4 * slots)
    return frame_of_tasks(spark, work, by.chunks, exchange.CHUNKS)


def _weight(file: RecordFile | OpenFile) -> int:
    if isinstance(file, RecordFile):
        return 1 + file.rows
    return 1 + file.size // _ROW_BYTES // _OPEN_ROWS


def _buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[bytes]]]:
    """Chunks, those of a bucket together."""
    rows = (
        (bucket, chunk)
        for batch in batches
        for bucket, chunk in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for bucket, found in groupby(rows, key=itemgetter(0)):
        yield bucket, [chunk for _, chunk in found]
