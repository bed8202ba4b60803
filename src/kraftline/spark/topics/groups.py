"""`groups`: what each consumer group was, from when to when.

Offsets are those of the group's partition of `__consumer_offsets`. A classic group is one record
that says all; a newer one is a record for its epoch and one for each of its members, which are
counted.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import CLOSED, GROUPS, OPEN

if TYPE_CHECKING:
    from pyspark.sql import Column

_CLASSIC = "GROUP_METADATA"
_KINDS = {
    _CLASSIC: "classic",
    "CONSUMER_GROUP_METADATA": "consumer",
    "CONSUMER_GROUP_MEMBER_METADATA": "consumer",
    "SHARE_GROUP_METADATA": "share",
    "SHARE_GROUP_MEMBER_METADATA": "share",
    "STREAMS_GROUP_METADATA": "streams",
    "STREAMS_GROUP_MEMBER_METADATA": "streams",
}
_EMPTY, _STABLE = "Empty", "Stable"
_BY_OFFSET = ("partition", "offset")


def groups(records: DataFrame, known: DataFrame | None, reached: DataFrame) -> DataFrame:
    """Columns as in the lake; a row per state that a group had. `known` are the lake's rows, of
    records up to what was `reached` (cluster_id, partition, end_offset)."""
    kind = F.create_map(*(F.lit(each) for pair in _KINDS.items() for each in pair))
    events = records.withColumn("kind", kind[F.col("key_type")]).where("kind IS NOT NULL")
    # Where members are gone from a compacted log, what is left of it counts too few of them.
    newer = _modern(events).join(F.broadcast(reached), ["cluster_id", "partition"], "left")
    fresh = _classic(events).unionByName(
        newer.where("end_offset IS NULL OR offset >= end_offset").drop("end_offset")
    )
    told = with_known(fresh, known, _KEYS, _SAID)
    return closed_by_next(told, _KEYS, _SAID).select(*GROUPS.columns.names)


_KEYS = ("cluster_id", "group")
_SAID = ("kind", "epoch", "protocol_type", "protocol", "leader", "members", "group_state")


def _classic(events: DataFrame) -> DataFrame:
    members = F.coalesce(
        F.expr("json_array_length(get_json_object(value_payload, '$.data.members'))"), F.lit(0)
    )
    return events.where(F.col("key_type") == _CLASSIC).select(
        *_WHEN,
        F.col("value_payload").isNotNull().alias("there"),
        "kind",
        _of_value("generation").cast("int").alias("epoch"),
        _text_or_null(_of_value("protocolType")).alias("protocol_type"),
        _of_value("protocol").alias("protocol"),
        _of_value("leader").alias("leader"),
        members.cast("int").alias("members"),
        F.when(members > 0, _STABLE).otherwise(_EMPTY).alias("group_state"),
    )


def _modern(events: DataFrame) -> DataFrame:
    """The epoch carried on, and members counted: plus one where one appears, minus one where one
    is gone."""
    newer = events.where(F.col("key_type") != _CLASSIC)
    is_member = F.col("key_type").endswith("_MEMBER_METADATA")
    here = F.col("value_payload").isNotNull()
    member = Window.partitionBy(
        "cluster_id", "group", "key_type", F.get_json_object("key_payload", "$.data.memberId")
    ).orderBy(*_BY_OFFSET)
    group = Window.partitionBy("cluster_id", "group").orderBy(*_BY_OFFSET)
    before = F.coalesce(F.lag(here).over(member), F.lit(False))
    moved = F.when(is_member, here.cast("int") - before.cast("int")).otherwise(0)
    counted = newer.withColumn("moved", moved).withColumns(
        {
            "members": F.sum("moved").over(group).cast("int"),
            "epoch": F.last(
                F.when(~is_member & here, _of_value("epoch").cast("int")), ignorenulls=True
            ).over(group),
            # The group's own record says whether there is a group at all.
            "there": F.coalesce(
                F.last(F.when(~is_member, here), ignorenulls=True).over(group), F.lit(True)
            ),
        }
    )
    nothing = F.lit(None).cast("string")
    return counted.select(
        *_WHEN,
        "there",
        "kind",
        "epoch",
        nothing.alias("protocol_type"),
        nothing.alias("protocol"),
        nothing.alias("leader"),
        "members",
        F.when(F.col("members") > 0, _STABLE).otherwise(_EMPTY).alias("group_state"),
    )


_WHEN = ("cluster_id", "group", "partition", "offset", "timestamp")


def with_known(
    events: DataFrame, known: DataFrame | None, keys: tuple[str, ...], said: tuple[str, ...]
) -> DataFrame:
    """Events together with those that the rows of a lake come of, of which a log that was compacted
    or cut since has lost some. What the lake says of an offset counts."""
    events = events.select(*keys, *said, *_EVENT)
    if known is None:
        return events
    began = known.select(
        *keys,
        *said,
        F.lit(True).alias("there"),
        F.col("valid_from_offset").alias("offset"),
        F.col("valid_from_time").alias("timestamp"),
    )
    ended = known.where("valid_to_offset IS NOT NULL").select(
        *keys,
        *(F.lit(None).cast(known.schema[name].dataType).alias(name) for name in said),
        F.lit(False).alias("there"),
        F.col("valid_to_offset").alias("offset"),
        F.col("valid_to_time").alias("timestamp"),
    )
    # The end of a row is often the beginning of the next, which says more.
    every = [frame.withColumn("rank", F.lit(n)) for n, frame in enumerate((began, events, ended))]
    same = Window.partitionBy(*keys, "offset").orderBy("rank")
    return (
        reduce(DataFrame.unionByName, every)
        .withColumn("place", F.row_number().over(same))
        .where("place = 1")
        .drop("rank", "place")
    )


_EVENT = ("there", "offset", "timestamp")


def closed_by_next(events: DataFrame, keys: tuple[str, ...], said: tuple[str, ...]) -> DataFrame:
    """Rows that end where the next one of their entity begins; what says nothing new makes none.

    `events` have `there`, `offset` and `timestamp` besides keys and what is said. All of a group
    are in one partition.
    """
    entity = Window.partitionBy(*keys).orderBy("offset")
    state = F.struct("there", *said)
    changed = events.withColumn("before", F.lag(state).over(entity)).where(
        F.col("before").isNull() | ~F.col("before").eqNullSafe(state)
    )
    # Times of commits may go back; those of a history never do.
    passed = changed.withColumn("valid_from_time", F.max("timestamp").over(entity))
    return (
        passed.withColumn("valid_to_offset", F.lead("offset").over(entity))
        .withColumn("valid_to_time", F.lead("valid_from_time").over(entity))
        .where("there")
        .withColumn("valid_from_offset", F.col("offset"))
        .withColumn("committed", F.lit(True))
        .withColumn("state", F.when(F.col("valid_to_offset").isNull(), OPEN).otherwise(CLOSED))
    )


def _of_value(field: str) -> Column:
    return F.get_json_object("value_payload", f"$.data.{field}")


def _text_or_null(column: Column) -> Column:
    return F.when(column != "", column)
