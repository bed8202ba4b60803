"""What a snapshot behind a gap shows: what has changed until there, though not when.

Told from the rows that end at the snapshot and those that begin with it, as `kraftline changes`
tells the difference between two images.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.lake.tables import TABLES
from kraftline.spark.history.changes.rare import GATHERED, gathered
from kraftline.spark.history.staged import Staged, united

_GAP = ("cluster_id", "leg", "at_offset", "at_time", "epoch")
# What is told of a thing by its table, where that is all there is to it.
_PLAIN = {
    "brokers": "broker",
    "controllers": "controller",
    "acls": "acl",
    "delegation_tokens": "token",
}


def over_gaps(staged: Staged, made: Mapping[str, DataFrame]) -> DataFrame | None:
    """Rows as GATHERED; None if no leg follows another. `made` are the history tables."""
    if all(row["next_base_offset"] is None for row in staged.leg_rows):
        return None
    gaps = staged.legs.where(F.col("next_base_offset").isNotNull()).select(
        "cluster_id",
        "leg",
        "end_offset",
        F.col("next_base_offset").alias("at_offset"),
        F.col("next_base_time").alias("at_time"),
        F.lit(None).cast("int").alias("epoch"),
    )
    pairs = {name: _pairs(made[name], gaps, name) for name in made}
    return united(
        gathered("gap", gaps, F.col("end_offset").alias("first"), F.col("at_offset").alias("last")),
        *(
            gathered(what, pairs[name], F.col(TABLES[name].keys[0]), F.col("was"), F.col("now"))
            for name, what in _PLAIN.items()
        ),
        _settings(pairs),
        _topics(pairs, made, gaps),
    ).select(*GATHERED)


def _pairs(rows: DataFrame, gaps: DataFrame, name: str) -> DataFrame:
    """What was before a gap and what is behind it, where they differ: structs `was` and `now`."""
    keys = list(TABLES[name].keys)
    names = TABLES[name].columns.names
    own = names[1 : names.index("valid_from_offset")]
    if name == "delegation_tokens":
        rows = rows.withColumn("expiration_ms", F.unix_millis("expiration_time"))
        own = [*own, "expiration_ms"]
    return _both(rows, gaps, keys, own).where(~F.col("was").eqNullSafe(F.col("now")))


def _both(rows: DataFrame, gaps: DataFrame, keys: list[str], own: list[str]) -> DataFrame:
    bounded = rows.drop("committed", "state").join(F.broadcast(gaps), "cluster_id")
    at = F.col("at_offset")

    def side(holds: Column, name: str) -> DataFrame:
        return bounded.where(holds).select(*_GAP, *keys, F.struct(*own).alias(name))

    was = side(F.col("valid_to_offset") == at, "was")
    now = side(F.col("valid_from_offset") == at, "now")
    on = F.lit(True)
    for key in (*_GAP, *keys):
        on = on & F.col(f"was_side.{key}").eqNullSafe(F.col(f"now_side.{key}"))
    joined = was.alias("was_side").join(now.alias("now_side"), on, "full")
    common = [F.coalesce(f"was_side.{key}", f"now_side.{key}").alias(key) for key in (*_GAP, *keys)]
    return joined.select(*common, "was", "now")


def _settings(pairs: Mapping[str, DataFrame]) -> DataFrame:
    was, now = F.col("was"), F.col("now")
    # Configs come and go with their topic, whose change tells of them.
    other = pairs["topics"].select(
        "cluster_id",
        "leg",
        F.lit("topic").alias("resource_type"),
        F.coalesce(now["topic"], was["topic"]).alias("resource"),
    )
    kept = pairs["configs"].join(other.distinct(), other.columns, "left_anti")
    return united(
        gathered(
            "config",
            kept,
            *map(F.col, ("resource_type", "resource", "name")),
            F.coalesce(now["is_secret"], was["is_secret"]).alias("is_secret"),
            now.isNotNull().alias("there"),
            was.isNotNull().alias("was_there"),
            was["value"].alias("was"),
            now["value"].alias("now"),
        ),
        gathered(
            "quota",
            pairs["client_quotas"],
            F.coalesce(now["entity"], was["entity"]).alias("entity"),
            F.col("key"),
            was["value"].alias("was"),
            now["value"].alias("now"),
        ),
        gathered(
            "scram",
            pairs["scram"],
            F.col("user"),
            F.col("mechanism"),
            was["iterations"].alias("was"),
            now["iterations"].alias("now"),
        ),
        gathered(
            "feature",
            pairs["features"],
            F.col("feature"),
            was["level"].alias("was"),
            now["level"].alias("now"),
        ),
    )


def _topics(
    pairs: Mapping[str, DataFrame], made: Mapping[str, DataFrame], gaps: DataFrame
) -> DataFrame:
    """A row per topic that is not as it was, with its partitions on both sides and all brokers."""
    changed = united(
        pairs["topics"].select(*_GAP, "topic_id"), pairs["partitions"].select(*_GAP, "topic_id")
    ).distinct()
    names = _both(made["topics"], gaps, ["topic_id"], ["topic"])
    bounded = made["partitions"].join(F.broadcast(gaps), "cluster_id")
    columns = [name for name in made["partitions"].columns if not name.startswith("valid_")]
    left_out = ("cluster_id", "topic", "topic_id", "committed", "state")
    each = F.struct(*(name for name in columns if name not in left_out))
    at = F.col("at_offset")
    partitions = bounded.groupBy("cluster_id", "at_offset", "topic_id").agg(
        *(
            F.sort_array(F.collect_list(F.when(holds, each))).alias(name)
            for name, holds in (
                ("partitions_was", F.col("valid_to_offset") == at),
                ("partitions_now", F.col("valid_from_offset") == at),
            )
        )
    )
    configs = (
        made["configs"]
        .where(F.col("resource_type") == "topic")
        .join(F.broadcast(gaps), "cluster_id")
        .where(F.col("valid_from_offset") == at)
        .groupBy("cluster_id", "at_offset", F.col("resource").alias("topic_now"))
        .agg(F.collect_list(F.struct("name", "value", "is_secret")).alias("configs"))
    )
    brokers = made["brokers"]
    own = list(brokers.columns[1 : brokers.columns.index("valid_from_offset")])
    known = (
        _both(brokers, gaps, ["broker"], own)
        .groupBy("cluster_id", "at_offset")
        .agg(F.to_json(F.collect_list(F.struct("was", "now"))).alias("brokers"))
    )
    key = ["cluster_id", "at_offset"]
    rows = (
        changed.join(names, [*_GAP[:3], "topic_id"])
        .select(
            *(changed[name] for name in _GAP),
            "topic_id",
            F.col("was")["topic"].alias("topic_was"),
            F.col("now")["topic"].alias("topic_now"),
        )
        .join(partitions, [*key, "topic_id"], "left")
        .join(configs, [*key, "topic_now"], "left")
        .join(F.broadcast(known), key, "left")
    )
    said = ("topic_id", "topic_was", "topic_now", "partitions_was", "partitions_now")
    return gathered("topic over a gap", rows, *map(F.col, (*said, "configs", "brokers")))
