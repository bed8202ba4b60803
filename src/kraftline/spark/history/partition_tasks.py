"""All that is made of partitions: brought together by topic, a bucket of topics at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from kraftline.lake.tables import OPEN
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS: Final = 1_000_000
# More news than this is not told apart, nor brought to the driver: most partitions have some then.
_MUCH_NEWS: Final = 500_000
# What a task works on at a time.
_BUCKET_ROWS: Final = 100_000
# Of a row in a file of open rows, about; such a row costs as much as a tenth of a record.
_ROW_BYTES: Final = 12
_OPEN_ROWS: Final = 10
# In place of a bucket: what was written before rows came into buckets.
_WROTE: Final = -1


class Passed(Struct, frozen=True):
    """Open rows that were read, and those without `news` of them written, before anything was
    replayed. `chunks` are of the others and of new records, in one of `count` buckets each."""

    news: News
    count: int
    chunks: pa.Table


def pass_on(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Iterable[OpenFile],
) -> Passed | None:
    """Pass on the rows that nothing happened to. None where there is too much news for that."""
    mine, going_on = _of_partitions(records), _going_on(opened, legs)
    rows = sum(file.rows for file in mine)
    if not going_on or rows > _MUCH_NEWS:
        return None
    news = news_of(spark, root, records, legs)
    count = _bucket_count(spark, rows)
    frame = _chunks(spark, _Reading(root, count, news), mine, going_on)
    with in_words(root):
        return Passed(news, count, frame.toArrow())


def write_partitions(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Iterable[OpenFile],
    things: Found,
    passed: Passed | None,
) -> list[bytes]:
    """The tables that are made of partitions; the files that were written, for
    `added_by_table`."""
    mine, going_on = _of_partitions(records), _going_on(opened, legs)
    if passed is not None and not things.covered_by(passed.news):
        passed = None
    topics = things.topics(None if passed is None else passed.news)
    rows = topics.num_rows + sum(file.rows for file in mine)
    if not rows and not going_on:
        return []
    count = _bucket_count(spark, rows) if passed is None else passed.count
    chunks = pa.Table.from_batches(exchange.buckets(topics, count), exchange.CHUNKS)
    if passed is not None:
        every = frame_of(spark, pa.concat_tables([chunks, passed.chunks]))
    else:
        every = frame_of(spark, chunks)
        if mine or going_on:
            every = every.union(_chunks(spark, _Reading(root, count, None), mine, going_on))
    known = spark.sparkContext.broadcast(things.arounds)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        said: list[bytes] = []
        with tables_out(root) as out:
            for bucket, chunks in _buckets(batches):
                if bucket == _WROTE:
                    said += chunks
                else:
                    Partitions(known.value, out).replay(exchange.in_order(chunks))
        said += out.said()
        yield pa.RecordBatch.from_arrays([pa.array(said, pa.binary())], ["said"])

    slots = spark.sparkContext.defaultParallelism
    tasks = slots * max(1, rows // _TASK_ROWS // slots)
    brought = every.repartitionById(tasks, "bucket").sortWithinPartitions("bucket")
    with in_words(root):
        told = brought.mapInArrow(write, "said binary").toArrow()
    known.unpersist()
    texts: list[bytes] = told.column(0).to_pylist()
    return texts


def _of_partitions(records: Iterable[RecordFile]) -> list[RecordFile]:
    return [file for file in records if file.type in exchange.PARTITION_TYPES]


def _bucket_count(spark: SparkSession, rows: int) -> int:
    return max(spark.sparkContext.defaultParallelism, rows // _BUCKET_ROWS)


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
