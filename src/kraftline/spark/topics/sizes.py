"""`topic_sizes`: a row per segment of every copy, from what the survey knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftline.lake.tables import TOPIC_SIZES
from kraftline.spark.inputs import InputFile
from kraftline.spark.survey import RUN, SurveyRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LAST_YEAR = 253_402_300_800_000  # 10000-01-01 in ms: no clock of ours says more


def topic_sizes(
    spark: SparkSession,
    segments: Sequence[InputFile],
    surveyed: Mapping[str, Sequence[SurveyRow]],
) -> DataFrame:
    """Columns as in the lake. `end_offset` is excluded; times are those of batches."""
    rows = [dict(_row(file, surveyed.get(file.path, ()))) for file in segments]
    return spark.createDataFrame(pa.Table.from_pylist(rows, TOPIC_SIZES.columns))


def _row(file: InputFile, rows: Sequence[SurveyRow]) -> Iterator[tuple[str, Any]]:
    runs = [row for row in rows if row.what == RUN]
    yield "cluster_id", file.cluster_id
    yield "topic", file.topic
    yield "partition", file.partition
    yield "node", file.node
    yield "base_offset", file.offset
    yield "end_offset", max((row.to_offset or 0 for row in runs), default=file.offset)
    yield "records", sum(row.records for row in runs)
    yield "bytes", file.size
    yield "first_time", _time(min((row.first_time for row in runs), default=-1))
    yield "last_time", _time(max((row.max_time for row in runs), default=-1))
    yield "file", file.path


def _time(ms: int) -> datetime | None:
    if not 0 <= ms < _LAST_YEAR:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC)
