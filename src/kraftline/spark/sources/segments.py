"""`kafka_segments`: topic segments from disk, a backup or a dead broker, a row per record.

    spark.read.format("kafka_segments").option("topics", "orders").load("/var/lib/kafka")

Paths are segments, partition or log directories, globs or URLs. Spark asks a Python source for all
its columns, whatever a query needs: `.schema("offset long, value binary")` reads only those.
Options: `topics`, `startOffset`, `endOffset`, `startTime`, `endTime`, `decode`, `isolation`,
`onDamage`, `splitBytes`, and for streams `maxRecordsPerTrigger`.

What only some queries need is imported by those: Spark starts a fresh Python for each step of its
planning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kraftline.spark.sources.pushdown import narrowed
from kraftline.spark.sources.segment_columns import RECORD, Columns, checked
from kraftline.spark.sources.segment_logs import PartitionLog, find_logs
from kraftline.spark.sources.segment_options import SegmentOptions, parse_options
from kraftline.spark.sources.segment_reading import OnDamage, runs_of
from kraftline.spark.sources.splits import Bounds, Piece, Split, piece_of, plan_splits
from kraftline.spark.workers import settle
from kraftline.storage.segment import Damage

if TYPE_CHECKING:
    from kraftline.spark.sources.segments_stream import SegmentStreamReader

_ENOUGH: Final = 4096  # rows that are worth a record batch of their own


class KafkaSegments(DataSource):
    """The source itself; see the top of this file."""

    @classmethod
    def name(cls) -> str:
        return "kafka_segments"

    def schema(self) -> StructType:
        return offered(parse_options(self.options))

    def reader(self, schema: StructType) -> SegmentBatchReader:
        options = parse_options(self.options)
        return SegmentBatchReader(options, checked(schema, offered(options)))

    def streamReader(self, schema: StructType) -> SegmentStreamReader:
        from kraftline.spark.sources.segments_stream import SegmentStreamReader

        options = parse_options(self.options)
        return SegmentStreamReader(options, checked(schema, offered(options)))


def offered(options: SegmentOptions) -> StructType:
    """All columns there are under these options."""
    if options.decode == "none":
        return RECORD
    from kraftline.spark.sources.typed import typed_fields

    return StructType([*RECORD, *typed_fields(options.decode)])


class SegmentBatchReader(DataSourceReader):
    """Plans splits, and reads one in a task."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._options = narrowed(self._options, filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return plan(self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self._schema, self._options)


def plan(options: SegmentOptions) -> list[Split]:
    """Splits of everything that the options ask for."""
    pieces = [piece for log in wanted_logs(options) for piece in pieces_of(log, options)]
    return plan_splits(pieces, options.split_bytes)


def wanted_logs(options: SegmentOptions) -> list[PartitionLog]:
    topics = options.topics
    if not topics and options.decode != "none":
        from kraftline.spark.sources.typed import internal_topic

        topics = (internal_topic(options.decode),)
    return [
        log
        for log in find_logs(options.paths, topics)
        if (options.only_topics is None or log.topic in options.only_topics)
        and (options.only_partitions is None or log.partition in options.only_partitions)
    ]


def pieces_of(log: PartitionLog, options: SegmentOptions) -> list[Piece]:
    """What is to be read of one partition."""
    bounds = Bounds(
        start_offset=options.start_offset or 0,
        end_offset=options.end_offset,
        start_time=options.start_time,
        end_time=options.end_time,
    )
    found = [piece_of(log, segment, bounds) for segment in log.segments]
    pieces = [piece for piece in found if piece is not None]
    if not options.committed or not pieces:
        return pieces
    from kraftline.spark.sources.isolation import committed

    return committed(log, pieces)


def read_split(
    partition: InputPartition, schema: StructType, options: SegmentOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one split; in a task."""
    if not isinstance(partition, Split):  # there was nothing to plan
        return
    typed = None
    if options.decode != "none":
        from kraftline.spark.sources.typed import Typed

        typed = Typed(options.decode)
    columns = Columns(schema, typed)
    on_damage = log_damage if options.skip_damage else raise_damage
    yield from _large_enough(_batches(partition.pieces, columns, on_damage))
    settle()


def _batches(
    pieces: Iterable[Piece], columns: Columns, on_damage: OnDamage
) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        for run in runs_of(piece, on_damage):
            batch = columns.batch(run, piece)
            if batch.num_rows:
                yield batch


def _large_enough(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small record batches put together: each costs Spark the same, whatever is in it."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ENOUGH:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def raise_damage(damage: Damage) -> None:
    raise damage.error().at(hint='option("onDamage", "skip") reads on behind it')


def log_damage(damage: Damage) -> None:
    """A line in the executor's log; `segment_damage` has the same as rows."""
    print(f"kafka_segments: left out: {damage.error()}", file=sys.stderr, flush=True)
