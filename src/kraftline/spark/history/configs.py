"""Configs by resource and key; a removed topic's go with it. Values of secrets are not kept."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.lake.names import CONFIG_RESOURCES
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.words.values import SECRET_ENDS
from kraftline.spark.history.codes import name_of
from kraftline.spark.history.staged import MOMENT, Staged, fields, united


def config_events(staged: Staged, lives: DataFrame) -> DataFrame:
    """Events with the columns of the table, `there`, `silent` (it came or went with its topic) and
    `created`: the topic is created by the same unit."""
    config = fields("CONFIG_RECORD")
    secret = is_secret(config["name"])
    said = {
        "resource_type": name_of(config["resource_type"], CONFIG_RESOURCES),
        "resource": config["resource_name"],
        "name": config["name"],
        "value": F.when(~secret, config["value"]),
        "is_secret": secret,
        "there": config["value"].isNotNull(),
    }
    opened = {name: F.col(name) for name in said if name != "there"}
    set_ = united(
        staged.events({"CONFIG_RECORD": said}),
        staged.opened("configs", {**opened, "there": F.lit(True)}),
    )
    new = lives.where(F.col("began_unit").isNotNull()).select(
        "cluster_id",
        "leg",
        F.lit(CONFIG_RESOURCES[TOPIC]).alias("resource_type"),
        F.col("topic").alias("resource"),
        F.col("began_unit").alias("unit"),
        F.lit(True).alias("created"),
    )
    told = set_.join(new.distinct(), new.columns[:-1], "left").withColumns(
        {
            "created": F.coalesce("created", F.lit(False)),
            "silent": F.coalesce("created", F.lit(False)) & F.col("there"),
        }
    )
    return united(told, _removals(set_, lives) if staged.has("REMOVE_TOPIC_RECORD") else None)


def _removals(events: DataFrame, lives: DataFrame) -> DataFrame:
    """For every key that a topic of a removed one's name ever had: gone with it."""
    keys = (
        events.where(F.col("resource_type") == CONFIG_RESOURCES[TOPIC])
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
        F.lit(CONFIG_RESOURCES[TOPIC]).alias("resource_type"),
        "resource",
        "name",
        F.lit(None).cast("string").alias("value"),
        "is_secret",
        F.lit(False).alias("there"),
        F.lit(False).alias("created"),
        F.lit(True).alias("silent"),
    )


def is_secret(name: Column) -> Column:
    """As `words.values.is_secret`."""
    lower, found = F.lower(name), F.lit(False)
    for end in SECRET_ENDS:
        found = found | lower.endswith(end)
    return found
