"""Topics: created by a record, gone with another; `lives` is what partitions and configs follow."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import Staged, fields, united
from kraftline.spark.history.validity import ORDER

# What names a life within its cluster.
LIFE = ("cluster_id", "leg", "topic_id", "life_offset", "life_index")


def topics() -> Said:
    topic, gone = fields("TOPIC_RECORD"), fields("REMOVE_TOPIC_RECORD")
    return {
        "TOPIC_RECORD": (F.lit(True), {"topic": topic["name"], "topic_id": topic["topic_id"]}),
        "REMOVE_TOPIC_RECORD": (F.lit(False), {"topic_id": gone["topic_id"]}),
    }


def topic_events(staged: Staged) -> DataFrame:
    """Events with `topic_id`, `topic` and `there`."""
    said = {
        record_type: {**columns, "there": there}
        for record_type, (there, columns) in topics().items()
    }
    columns = {"topic_id": F.col("topic_id"), "topic": F.col("topic"), "there": F.lit(True)}
    return united(staged.events(said), staged.opened("topics", columns))


def lives(events: DataFrame, legs: DataFrame) -> DataFrame:
    """A row per time that a topic was there: LIFE, topic, began_at/_time/_unit/_epoch and
    ended_at/_time; `removed`, and where: removed_offset/_index/_unit/_epoch.

    A Topic record begins a life without partitions, even if there was such a topic. `next_*` is
    the event that ends it, `opened` whether it began before this build.
    """
    topic = Window.partitionBy("cluster_id", "leg", "topic_id").orderBy(*ORDER)

    def following(column: str) -> Column:
        return F.lead(column).over(topic)

    found = events.select(
        "cluster_id",
        "leg",
        "topic_id",
        "topic",
        "opened",
        "there",
        F.col("offset").alias("life_offset"),
        F.col("index").alias("life_index"),
        F.col("at_offset").alias("began_at"),
        F.col("at_time").alias("began_time"),
        F.col("unit").alias("began_unit"),
        F.col("epoch").alias("began_epoch"),
        following("offset").alias("next_offset"),
        following("index").alias("next_index"),
        following("at_offset").alias("next_at"),
        following("at_time").alias("next_time"),
        following("unit").alias("next_unit"),
        following("epoch").alias("next_epoch"),
        F.coalesce(~following("there"), F.lit(False)).alias("removed"),
    ).where("there")
    bases = legs.select("cluster_id", "leg", "next_base_offset", "next_base_time")
    joined = found.join(F.broadcast(bases), ["cluster_id", "leg"])
    return joined.withColumns(
        {
            "ended_at": F.coalesce("next_at", "next_base_offset"),
            "ended_time": F.coalesce("next_time", "next_base_time"),
        }
    ).drop("there", "next_base_offset", "next_base_time")


def inside_life(offset: Column, index: Column) -> Column:
    """Whether something at that place of the log falls into a life."""
    begun = (offset > F.col("life_offset")) | (
        (offset == F.col("life_offset")) & (index >= F.col("life_index"))
    )
    not_over = (
        F.col("next_offset").isNull()
        | (offset < F.col("next_offset"))
        | ((offset == F.col("next_offset")) & (index < F.col("next_index")))
    )
    return begun & not_over
