"""Configs by resource and key; a removed topic's go with it. Values of secrets are not kept."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.lake.tables import CONFIGS
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.metadata.words.values import SECRET_ENDS
from kraftline.spark.history.codes import name_of
from kraftline.spark.history.staged import MOMENT, Staged, united
from kraftline.spark.history.validity import valid_rows

RESOURCES: Final = {
    TOPIC: "topic",
    BROKER: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}


def config_events(staged: Staged, lives: DataFrame) -> DataFrame:
    """Events with the columns of the table, `there`, and `with_topic`: it went with its topic."""
    r = F.col("r")
    columns = {
        "resource_type": F.col("resource_type"),
        "resource": F.col("resource"),
        "name": F.col("name"),
    }
    set_ = united(
        staged.of(
            "CONFIG_RECORD",
            resource_type=name_of(r["resource_type"], RESOURCES),
            resource=r["resource_name"],
            name=r["name"],
            value=F.when(~is_secret(r["name"]), r["value"]),
            is_secret=is_secret(r["name"]),
            there=r["value"].isNotNull(),
            with_topic=F.lit(False),
        ),
        staged.opened(
            "configs",
            **columns,
            value=F.col("value"),
            is_secret=F.col("is_secret"),
            there=F.lit(True),
            with_topic=F.lit(False),
        ),
    )
    return united(set_, _removals(set_, lives) if staged.has("REMOVE_TOPIC_RECORD") else None)


def _removals(events: DataFrame, lives: DataFrame) -> DataFrame:
    """For every key that a topic of a removed one's name ever had: gone with it."""
    keys = (
        events.where(F.col("resource_type") == RESOURCES[TOPIC])
        .select("cluster_id", "leg", "resource", "name", "is_secret")
        .distinct()
    )
    removed = lives.where("removed").select(
        "cluster_id",
        "leg",
        F.col("topic").alias("resource"),
        F.col("next_offset").alias("offset"),
        F.col("next_index").alias("index"),
        F.col("next_at").alias("at_offset"),
        F.col("next_time").alias("at_time"),
        F.col("next_unit").alias("unit"),
        F.col("next_epoch").alias("epoch"),
    )
    return removed.join(keys, ["cluster_id", "leg", "resource"]).select(
        *[name for name in MOMENT if name != "opened"],
        F.lit(False).alias("opened"),
        F.lit(RESOURCES[TOPIC]).alias("resource_type"),
        "resource",
        "name",
        F.lit(None).cast("string").alias("value"),
        "is_secret",
        F.lit(False).alias("there"),
        F.lit(True).alias("with_topic"),
    )


def config_rows(events: DataFrame, legs: DataFrame) -> DataFrame:
    """Rows of the table with MOMENT, for whoever needs to know what held when."""
    return valid_rows(events, legs, CONFIGS)


def is_secret(name: Column) -> Column:
    """As `words.values.is_secret`."""
    lower, found = F.lower(name), F.lit(False)
    for end in SECRET_ENDS:
        found = found | lower.endswith(end)
    return found
