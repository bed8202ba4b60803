"""What a snapshot behind a gap shows: what has changed until there, though not when.

Told from the rows that end at the snapshot and those that begin with it, as `kraftline changes`
tells the difference between two images.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.spark.history.changes.found import Found
from kraftline.spark.history.changes.rare import GATHERED, TOLD_BY_STATE, gathered, pairs
from kraftline.spark.history.partitions import partition_rows
from kraftline.spark.history.staged import Staged, united

_HERE = ["cluster_id", "gap"]


def over_gaps(staged: Staged, found: Found) -> DataFrame | None:
    """Rows as GATHERED; None if no leg follows another."""
    if all(row["next_base_offset"] is None for row in staged.leg_rows):
        return None
    gaps = staged.legs.where(F.col("next_base_offset").isNotNull()).select(
        "cluster_id",
        F.col("leg").alias("gap"),
        F.col("end_offset").alias("missing_from"),
        F.col("next_base_offset").alias("gap_offset"),
        F.col("next_base_time").alias("gap_time"),
    )
    sides = _sides(found.rows, gaps)
    told = united(
        gathered("gap", _placed(gaps), *map(F.col, ("missing_from", "gap_offset"))),
        _things(sides),
        _topics(sides, found.steps, gaps),
    )
    return told.select(*GATHERED)


def _placed(rows: DataFrame) -> DataFrame:
    """Rows of a gap with the moment at which they are told: when the next leg begins."""
    return rows.withColumns(
        {
            "leg": F.col("gap"),
            "at_offset": F.col("gap_offset"),
            "at_time": F.col("gap_time"),
            "epoch": F.lit(None).cast("int"),
        }
    )


def _before() -> Column:
    """Whether a row was true when the log broke off."""
    return (F.col("leg") == F.col("gap")) & (F.col("valid_to_offset") == F.col("gap_offset"))


def _behind() -> Column:
    """Whether a row is one that the snapshot behind the gap has."""
    return F.col("at_offset") == F.col("gap_offset")


def _sides(rows: DataFrame, gaps: DataFrame) -> DataFrame:
    """Every thing on either side of a gap: `was` and `now`."""
    near = rows.join(F.broadcast(gaps), "cluster_id")
    key = [*_HERE, "missing_from", "gap_offset", "gap_time", "table", "key"]
    was = near.where(_before()).select(*key, F.col("state").alias("was"))
    now = near.where(_behind()).select(*key, F.col("state").alias("now"))
    return was.join(now, key, "full")


def _things(sides: DataFrame) -> DataFrame:
    changed = sides.where(~F.col("was").eqNullSafe(F.col("now")))
    # Configs come and go with their topic, whose change tells of them.
    topics = changed.where(F.col("table") == "topics").select(
        *_HERE,
        F.lit("configs").alias("table"),
        F.coalesce(F.col("now")["topics"]["topic"], F.col("was")["topics"]["topic"]).alias("topic"),
    )
    config = F.coalesce(F.col("now")["configs"], F.col("was")["configs"])
    topic = F.when(config["resource_type"] == "topic", config["resource"])
    others = (
        changed.where(F.col("table").isin(*TOLD_BY_STATE, "features"))
        .withColumn("topic", topic)
        .join(topics.distinct(), topics.columns, "left_anti")
    )
    return pairs(_placed(others))


def _topics(sides: DataFrame, steps: DataFrame, gaps: DataFrame) -> DataFrame:
    """A row per topic that is not as it was: its partitions on both sides, and all brokers."""
    names = sides.where(F.col("table") == "topics").select(
        *_HERE,
        "gap_offset",
        "gap_time",
        F.coalesce(F.col("now")["topics"]["topic_id"], F.col("was")["topics"]["topic_id"]).alias(
            "topic_id"
        ),
        F.col("was")["topics"]["topic"].alias("topic_was"),
        F.col("now")["topics"]["topic"].alias("topic_now"),
    )
    each = F.struct(
        "partition",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "replicas",
        "isr",
        "adding_replicas",
        "removing_replicas",
        "leader_recovery_state",
        "elr",
        "last_known_elr",
        "directories",
    )
    near = partition_rows(steps).join(F.broadcast(gaps), "cluster_id")
    partitions = near.groupBy(*_HERE, "topic_id").agg(
        F.sort_array(F.collect_list(F.when(_before(), each))).alias("partitions_was"),
        F.sort_array(F.collect_list(F.when(_behind(), each))).alias("partitions_now"),
    )
    config = F.col("now")["configs"]
    configs = (
        sides.where((F.col("table") == "configs") & (config["resource_type"] == "topic"))
        .groupBy(*_HERE, config["resource"].alias("topic_now"))
        .agg(
            F.collect_list(
                F.struct(
                    config["name"].alias("name"),
                    config["value"].alias("value"),
                    config["is_secret"].alias("is_secret"),
                )
            ).alias("configs")
        )
    )
    pair = F.struct(F.col("was")["brokers"].alias("was"), F.col("now")["brokers"].alias("now"))
    brokers = (
        sides.where(F.col("table") == "brokers")
        .groupBy(*_HERE)
        .agg(F.to_json(F.collect_list(pair), {"ignoreNullFields": "false"}).alias("brokers"))
    )
    rows = (
        names.join(partitions, [*_HERE, "topic_id"], "left")
        .where(
            ~F.col("topic_was").eqNullSafe(F.col("topic_now"))
            | ~F.col("partitions_was").eqNullSafe(F.col("partitions_now"))
        )
        .join(configs, [*_HERE, "topic_now"], "left")
        .join(F.broadcast(brokers), _HERE, "left")
    )
    said = ("topic_id", "topic_was", "topic_now", "partitions_was", "partitions_now")
    return gathered("topic over a gap", _placed(rows), *map(F.col, (*said, "configs", "brokers")))
