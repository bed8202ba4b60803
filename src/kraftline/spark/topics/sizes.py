"""`topic_sizes`: a row per segment of every copy, from what the survey knows of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

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
    known: pa.Table,
    looked_at: Collection[str],
) -> DataFrame:
    """Columns as in the lake, of which `known` are the rows. `end_offset` is excluded; times are
    those of batches.

    Rows of copies stay that this run did not look at: that lie elsewhere, and of which it has no
    newer copy.
    """
    rows = [dict(_row(file, surveyed.get(file.path, ()))) for file in segments]
    found = pa.Table.from_pylist(rows, TOPIC_SIZES.columns)
    here = {(file.cluster_id, file.node, file.topic, file.partition) for file in segments}
    copies = zip(*(known.column(name).to_pylist() for name in _COPY), strict=True)
    stays = [
        copy not in here and not _is_below(file, looked_at)
        for copy, file in zip(copies, known.column("file").to_pylist(), strict=True)
    ]
    return spark.createDataFrame(pa.concat_tables([found, known.filter(pa.array(stays, "bool"))]))


_COPY: Final = ("cluster_id", "node", "topic", "partition")


def _is_below(path: str, places: Collection[str]) -> bool:
    """Whether a file is one of some places, or in one of them however deep."""
    while path not in places:
        path, slash, _ = path.rpartition("/")
        if not slash:
            return False
    return True


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
