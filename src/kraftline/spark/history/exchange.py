"""Partitions of all clusters brought together by Spark: one exchange by topic and one sort.

Every row has the same shape: records of partitions, rows that were open after the last build, and
the lives of their topics, which come before the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftline.metadata.partition import NO_LEADER_CHANGE
from kraftline.spark.frames import frame_of
from kraftline.spark.history.moments import BEFORE_ALL, UNIT_BITS, UNIT_MASK
from kraftline.spark.history.placed import CHANGE, HEALTH, WHOLE
from kraftline.spark.record_table import struct_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITION_TYPES: Final = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
# What is said of a topic, as rows before those of its partitions.
SAID: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("leg", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("index", pa.int32()),
        pa.field("how", pa.int8()),
        pa.field("payload", pa.binary()),
    ]
)
BEFORE_PARTITIONS: Final = -1
_KEYS: Final = ("cluster_id", "topic_id", "leg", "partition", "offset", "index")
_COLUMNS: Final = {
    "cluster_id": "string",
    "topic_id": "string",
    "leg": "int",
    "partition": "int",
    "offset": "bigint",
    "index": "int",
    "how": "tinyint",
    "time": "timestamp",
    "epoch": "int",
    "unit": "bigint",
    "leader": "int",
    "recovery": "tinyint",
    "leader_epoch": "int",
    "partition_epoch": "int",
    "replicas": "array<int>",
    "isr": "array<int>",
    "adding_replicas": "array<int>",
    "removing_replicas": "array<int>",
    "elr": "array<int>",
    "last_known_elr": "array<int>",
    "directories": "array<string>",
    "kind": "string",
    "detail": "string",
    "payload": "binary",
}


def exchanged(frames: list[DataFrame], tasks: int) -> DataFrame:
    """All rows in so many tasks, those of a topic together and in their order."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole.repartition(tasks, "cluster_id", "topic_id").sortWithinPartitions(*_KEYS)


def topics_said(spark: SparkSession, said: pa.Table) -> DataFrame:
    """Lives of topics and the like, with the columns of SAID."""
    return _shaped(frame_of(spark, said), {"partition": _lit(BEFORE_PARTITIONS)}, SAID.names)


def records_said(records: DataFrame, record_type: str) -> DataFrame:
    """The records of one of PARTITION_TYPES."""
    from pyspark.sql import functions as F

    said = F.col(struct_name(record_type))
    is_whole = record_type == PARTITION_TYPES[0]

    def whole(field: str) -> Column:
        # A Partition record says all there is, if only that there is none.
        none = F.array().cast("array<string>" if field == "directories" else "array<int>")
        return F.coalesce(said[field], none) if is_whole else said[field]

    batch = F.shiftleft(F.crc32("file").bitwiseAND(UNIT_MASK), UNIT_BITS)
    columns = {
        "topic_id": said["topic_id"],
        "partition": said["partition_id"],
        "how": F.lit(WHOLE if is_whole else CHANGE),
        "time": F.col("log_time"),
        "unit": F.when(~F.col("in_snapshot"), batch.bitwiseXOR(F.col("position"))),
        "leader": said["leader"],
        "recovery": said["leader_recovery_state"],
        "replicas": said["replicas"],
        "isr": said["isr"],
        "adding_replicas": whole("adding_replicas"),
        "removing_replicas": whole("removing_replicas"),
        "elr": whole("eligible_leader_replicas"),
        "last_known_elr": whole("last_known_elr"),
        "directories": whole("directories"),
    }
    if is_whole:
        columns |= {name: said[name] for name in ("leader_epoch", "partition_epoch")}
    else:
        columns["leader"] = F.nullif(said["leader"], F.lit(NO_LEADER_CHANGE))
        columns["recovery"] = F.nullif(said["leader_recovery_state"], F.lit(-1))
    kept = ("cluster_id", "leg", "offset", "index", "epoch")
    return _shaped(records.where("leg IS NOT NULL"), columns, kept)


def opened_said(rows: DataFrame, legs: DataFrame, *, is_health: bool) -> DataFrame:
    """Rows of `partitions`, or of partitions in `health`, that were open; `legs` are those that go
    on, with their clusters."""
    from pyspark.sql import functions as F

    columns = {
        "offset": F.col("valid_from_offset"),
        "index": F.lit(BEFORE_ALL),
        "how": F.lit(HEALTH if is_health else WHOLE),
        "time": F.col("valid_from_time"),
    }
    kept = ["cluster_id", "leg", "topic_id", "partition"]
    if is_health:
        rows = rows.where("partition IS NOT NULL")
        kept += ["kind", "detail"]
    else:
        columns["recovery"] = F.col("leader_recovery_state")
        kept += ["leader", "leader_epoch", "partition_epoch", "replicas", "isr"]
        kept += ["adding_replicas", "removing_replicas", "elr", "last_known_elr", "directories"]
    return _shaped(rows.join(F.broadcast(legs), "cluster_id"), columns, kept)


def _shaped(rows: DataFrame, columns: dict[str, Column], kept: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    own = {**{name: F.col(name) for name in kept}, **columns}
    return rows.select(
        *(own.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _COLUMNS.items())
    )


def _lit(value: int) -> Column:
    from pyspark.sql import functions as F

    return F.lit(value)
