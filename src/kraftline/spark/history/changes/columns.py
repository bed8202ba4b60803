"""The columns in which changes are told before they become rows of the table."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.lake.tables import CHANGES

# Of the table, but with the leg, by which `committed` is known.
TOLD: Final = (
    "cluster_id",
    "leg",
    "at_offset",
    "at_time",
    "epoch",
    "kind",
    "subject",
    "topic",
    "partition",
    "broker",
    "name",
    "before",
    "after",
    "cause",
    "text",
)


def as_changes(told: DataFrame, legs: DataFrame) -> DataFrame:
    """The table `changes`."""
    bounds = legs.select("cluster_id", "leg", "committed_to")
    made = {
        "offset": F.col("at_offset"),
        "time": F.col("at_time"),
        "committed": F.coalesce(F.col("at_offset") < F.col("committed_to"), F.lit(False)),
    }
    joined = told.join(F.broadcast(bounds), ["cluster_id", "leg"])
    return joined.select(
        *(made.get(name, F.col(name)).alias(name) for name in CHANGES.columns.names)
    )
