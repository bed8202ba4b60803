"""`group_offsets`: what each group had committed, from when to when, and how far behind it was.

How far a log reached when an offset was committed is known where its segments are: by the times
in its batch headers. Segments that are older than all commits of which it is not known yet are not
read again: the survey has told where they end.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from kraftline.lake.tables import GROUP_OFFSETS
from kraftline.records.framing import as_view
from kraftline.records.kernel import active as kernel
from kraftline.spark.inputs import InputFile
from kraftline.spark.sources.segment_logs import on_disk
from kraftline.spark.survey import RUN, SurveyRow
from kraftline.spark.tasks import shared_out
from kraftline.spark.topics.groups import closed_by_next, with_known
from kraftline.storage.segment import Damage, SegmentReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMMITS: Final = ("OFFSET_COMMIT", "LEGACY_OFFSET_COMMIT")
_ROWS: Final = 1024
_BEFORE: Final = -(2**63)
_LOG_ENDS: Final = "cluster_id string, topic string, partition int, time bigint, end_offset bigint"
_ENDS_SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("time", pa.int64()),
        pa.field("end_offset", pa.int64()),
    ]
)
_PARTITION: Final = ("cluster_id", "topic", "partition")
_MUCH: Final = 64 * 1024 * 1024  # bytes that take longer to read than to ask which are needed

Surveyed: TypeAlias = Mapping[str, Sequence[SurveyRow]]
Key: TypeAlias = tuple[str | None, str | None, int]  # cluster, topic, partition
# The first time (ms) at which something is to be known of a partition's log.
Wanted: TypeAlias = Mapping[Key, int]


def group_offsets(
    spark: SparkSession,
    records: DataFrame,
    known: DataFrame | None,
    segments: Sequence[InputFile],
    surveyed: Surveyed,
) -> DataFrame:
    """Columns as in the lake, of which `known` are the rows. A record without a value says that the
    offset is gone. `segments` are those of topics that are consumed."""
    commits = records.where(F.col("key_type").isin(*_COMMITS)).select(
        "cluster_id",
        "group",
        F.col("offset_topic").alias("topic"),
        F.col("offset_partition").alias("partition"),
        F.col("value_payload").isNotNull().alias("there"),
        "committed_offset",
        F.col("committed_leader_epoch").alias("leader_epoch"),
        "metadata",
        F.col("commit_timestamp").alias("commit_time"),
        "offset",
        "timestamp",
    )
    rows = closed_by_next(with_known(commits, known, _KEYS, _SAID), _KEYS, _SAID)
    wanted = None
    if known is not None:
        # The segments that said how far a log reached may be gone by now.
        said = known.select(*_KEYS, "valid_from_offset", F.col("log_end_offset").alias("was_said"))
        rows = rows.join(said, [*_KEYS, "valid_from_offset"], "left")
        if sum(file.size for file in segments) > _MUCH:
            wanted = _wanted(rows)
    else:
        rows = rows.withColumn("was_said", F.lit(None).cast("bigint"))
    ends = log_ends(spark, segments, surveyed, wanted)
    return _with_lag(rows, ends).select(*GROUP_OFFSETS.columns.names)


def _wanted(rows: DataFrame) -> Wanted:
    first = F.min(F.unix_millis("commit_time")).alias("time")
    found = rows.where("was_said IS NULL").groupBy(*_PARTITION).agg(first).where("time IS NOT NULL")
    return {(cluster, topic, at): time for cluster, topic, at, time in found.collect()}


_KEYS: Final = ("cluster_id", "group", "topic", "partition")
_SAID: Final = ("committed_offset", "leader_epoch", "metadata", "commit_time")


def _with_lag(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Each commit with the highest end that the log had by then."""
    both = commits.withColumn("time", F.unix_millis("commit_time")).unionByName(
        ends, allowMissingColumns=True
    )
    # A batch that has the commit's own millisecond was there: ends come first.
    so_far = Window.partitionBy(*_PARTITION).orderBy("time", F.col("end_offset").isNull())
    said = F.coalesce("was_said", F.max("end_offset").over(so_far))
    known = both.withColumn("log_end_offset", said)
    lag = F.greatest(F.col("log_end_offset") - F.col("committed_offset"), F.lit(0))
    return known.where("valid_from_offset IS NOT NULL").withColumn("lag", lag)


def log_ends(
    spark: SparkSession,
    segments: Sequence[InputFile],
    surveyed: Surveyed,
    wanted: Wanted | None = None,
) -> DataFrame:
    """How far each partition's log reached at which time (ms): a row per batch and copy, and one
    for the time before the first of them. Of segments before all that is `wanted`, a row says it.
    """
    starts: dict[Key, int] = {}
    told: list[tuple[str | None, str | None, int, int, int | None]] = []
    unread: list[InputFile] = []
    for file in segments:
        key = (file.cluster_id, file.topic, file.partition)
        starts[key] = min(file.offset, starts.get(key, file.offset))
        runs = [row for row in surveyed.get(file.path, ()) if row.what == RUN]
        if wanted is None or any(row.max_time > wanted.get(key, row.max_time) for row in runs):
            unread.append(file)
        else:
            told += [(*key, row.max_time, row.to_offset) for row in runs]
    told += [(*key, _BEFORE, start) for key, start in starts.items()]
    known = spark.createDataFrame(told, _LOG_ENDS)
    return known.unionByName(_read_ends(spark, unread)) if unread else known


def _read_ends(spark: SparkSession, segments: Sequence[InputFile]) -> DataFrame:
    slots = spark.sparkContext.defaultParallelism
    work = shared_out(segments, lambda file: file.size + 4096, 4 * slots)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for file in work[number]:
                    yield from _ends_of(file)

    return spark.range(0, len(work), 1, len(work)).mapInArrow(read, _LOG_ENDS)


def _ends_of(file: InputFile) -> Iterator[pa.RecordBatch]:
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    headers = np.frombuffer(table, np.int64).reshape(_ROWS, kernel.STRIDE)
    with on_disk(file.path) as path, SegmentReader(path, on_damage=_ignore) as reader:
        for run in reader.runs():
            view, at = as_view(run.buffer), run.start
            while at < run.end:
                count, at, _ = kernel.scan(view, at, run.end, 0, table)
                if not count:
                    break
                yield _rows(file, headers[:count])


def _rows(
    file: InputFile, headers: np.ndarray[tuple[int, int], np.dtype[np.int64]]
) -> pa.RecordBatch:
    count = len(headers)
    ends = headers[:, kernel.BASE_OFFSET] + headers[:, kernel.LAST_OFFSET_DELTA] + 1
    return pa.RecordBatch.from_arrays(
        [
            pa.array([file.cluster_id] * count, pa.string()),
            pa.array([file.topic] * count, pa.string()),
            pa.array([file.partition] * count, pa.int32()),
            pa.array(headers[:, kernel.MAX_TIMESTAMP].copy(), pa.int64()),
            pa.array(ends, pa.int64()),
        ],
        schema=_ENDS_SCHEMA,
    )


def _ignore(damage: Damage) -> None:
    """The survey has told of it."""
