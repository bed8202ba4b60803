"""`topic-data`: the records of topics into a folder, which is there once it is whole.

Segments are counted first and read then; the output is read once more, and both must agree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

import kraftline.spark
from kraftline.errors import KraftlineError
from kraftline.lake import delta
from kraftline.lake.files import is_local, normal
from kraftline.lake.tables import Table
from kraftline.spark.segment_survey import DAMAGE, PieceCount, count_segments
from kraftline.spark.sink import write_rows
from kraftline.spark.sources.segment_logs import PartitionLog, above, find_logs, whole_log
from kraftline.spark.sources.segment_options import parse_options
from kraftline.spark.topic_data.checks import Partition, PartitionCount, by_partition, problems
from kraftline.spark.topic_data.contents import with_content
from kraftline.spark.topic_data.copies import one_copy
from kraftline.spark.topic_data.json_shape import alike, shape_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("parquet", "delta")
_PARTITION_BY: Final = ("topic",)


class Export(Struct, frozen=True, kw_only=True):
    """What to write where. Times are in milliseconds; `until` is not included."""

    paths: tuple[str, ...]
    out: str
    topics: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    key: str = "bytes"
    value: str = "bytes"
    committed: bool = True
    format: str = "parquet"

    @property
    def all_times(self) -> bool:
        return self.since is None and self.until is None


class Exported(Struct, frozen=True, kw_only=True):
    """What came of it. `copies` are directories that were not read, for another one's sake."""

    partitions: list[PartitionCount]
    files: int
    bytes: int
    damage: list[PieceCount]
    errors: dict[str, int]
    copies: list[str]
    problems: list[str]


def export(
    spark: SparkSession, wanted: Export, on_stage: Callable[[str], None] = lambda stage: None
) -> Exported:
    """Write the records; the folder must not be there yet."""
    kraftline.spark.register(spark)
    out = free_folder(wanted.out)
    found = _chosen(wanted)
    on_stage("counting")
    counted = count_segments(spark, parse_options(_options(wanted, found)))
    logs, copies = one_copy(found, counted)
    counts = [count for count in counted if above(count.file) not in copies]
    options = _options(wanted, logs)
    on_stage("writing")
    frame = spark.read.format("kafka_segments").options(**options).load()
    for column, form in (("key", wanted.key), ("value", wanted.value)):
        frame = with_content(frame, column, form)
    if wanted.format == "delta" and (names := alike(shape_of(frame.schema))) is not None:
        raise KraftlineError(
            f"there are fields {names[0]} and {names[1]}, which are one to Delta; give --format "
            "parquet, or --value text"
        )
    table = _table(frame)
    with _aside(out) as folder:
        added = write_rows(frame, table, folder)
        if wanted.format == "delta":
            delta.create(folder, table.columns, _PARTITION_BY, added, name="topic data")
        on_stage("checking")
        written, errors = _written(spark, folder, frame.columns) if added else ({}, {})
        # Emptiness is an answer too, and must be there to be read.
        os.makedirs(folder, exist_ok=True)
        os.rename(folder, out)
    partitions = by_partition(counts, written)
    still = dict(_sizes(logs).items() & _sizes(_chosen(wanted)).items())
    stable = {(log.topic, log.partition) for log in logs if log.directory in still}
    settled = [each for each in partitions if (each.topic, each.partition) in stable]
    damage = [each for each in counts if each.kind == DAMAGE]
    return Exported(
        partitions=partitions,
        files=len(added),
        bytes=sum(each.size for each in added),
        damage=damage,
        errors=errors,
        copies=copies,
        problems=problems(settled, damage, all_times=wanted.all_times),
    )


def free_folder(out: str) -> str:
    """Where to write; KraftlineError where that cannot be."""
    out = normal(out)
    if not is_local(out):
        raise KraftlineError(f"{out}: give a folder of this machine; copy it from there when whole")
    if os.path.exists(out):
        raise KraftlineError(f"{out}: is there already; give a folder that is not")
    if not os.path.isdir(os.path.dirname(out)):
        raise KraftlineError(f"{os.path.dirname(out)}: there is no such directory to write to")
    return out


def _chosen(wanted: Export) -> list[PartitionLog]:
    """Partitions of the topics that are named; without names, of all that are users'."""
    found = find_logs(wanted.paths, wanted.topics)
    named = bool(wanted.topics) or len(found) == 1
    logs = [log for log in found if named or not (log.topic or "").startswith("__")]
    if not logs:
        raise KraftlineError(
            f"{', '.join(wanted.paths)}: only Kafka's own topics are there; name one with --topic"
        )
    return logs


def _sizes(logs: Sequence[PartitionLog]) -> dict[str, int]:
    """How many bytes each directory has: a broker may be writing while we read."""
    return {log.directory: sum(segment.size for segment in log.segments) for log in logs}


def _options(wanted: Export, logs: Sequence[PartitionLog]) -> dict[str, str]:
    paths = []
    for log in logs:
        whole = len(whole_log(log).segments) == len(log.segments)
        paths += [log.directory] if whole else [segment.path for segment in log.segments]
    options = {
        "paths": msgspec.json.encode(paths).decode(),
        "isolation": "read_committed" if wanted.committed else "read_uncommitted",
        "onDamage": "skip",
    }
    for name, time in (("startTime", wanted.since), ("endTime", wanted.until)):
        if time is not None:
            options[name] = str(time)
    return options


def _table(frame: DataFrame) -> Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    columns = to_arrow_schema(frame.schema, timezone="UTC")
    return Table("topic data", columns, ("topic", "partition", "offset"), _PARTITION_BY)


@contextmanager
def _aside(out: str) -> Iterator[str]:
    """A folder beside the one that is wanted, gone again unless it was moved there."""
    folder = f"{out}.part-{uuid4().hex[:8]}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _written(
    spark: SparkSession, folder: str, columns: Sequence[str]
) -> tuple[dict[Partition, int], dict[str, int]]:
    """What is in the output: records by partition, and records whose content is an error."""
    from pyspark.sql import functions as F

    errors = [name for name in columns if name.endswith("_error")]
    # Topics that are digits would be read as numbers, were the type of the folder's name guessed.
    rows = (
        spark.read.schema("topic string, partition int" + "".join(f", {e} string" for e in errors))
        .parquet(folder)
        .groupBy("topic", "partition")
        .agg(F.count("*").alias("records"), *(F.count(name).alias(name) for name in errors))
        .collect()
    )
    counts = {(row.topic, row.partition): row.records for row in rows}
    return counts, {name: sum(row[name] for row in rows) for name in errors}
