"""From events to rows that say from when to when something was true.

Of several events that took effect at one offset only the last counts; one that changes nothing
makes no row.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import CLOSED, OPEN, Table

ORDER: Final = ("offset", "index")
VALIDITY: Final = (
    "valid_from_offset",
    "valid_from_time",
    "valid_to_offset",
    "valid_to_time",
    "committed",
    "state",
)


def spans(events: DataFrame, legs: DataFrame, table: Table) -> DataFrame:
    """The rows of a table whose events turn something on and off (`there`), with its own columns
    and MOMENT: from the first that turns it on to the next that turns it off."""
    entity = Window.partitionBy("cluster_id", "leg", *table.keys).orderBy(*ORDER)
    counted = events.withColumn("next_at", F.lead("at_offset").over(entity)).where(
        last_at_offset(F.col("next_at"))
    )
    was_there = F.coalesce(F.lag("there").over(entity), F.lit(False))
    turned = counted.withColumn("was_there", was_there).where(F.col("there") != F.col("was_there"))
    ended = turned.withColumns(
        {
            "valid_to_offset": F.lead("at_offset").over(entity),
            "valid_to_time": F.lead("at_time").over(entity),
        }
    ).where("there")
    return as_rows(with_leg_ends(ended, legs), table)


def last_at_offset(next_offset: Column) -> Column:
    """Whether an event is the last of its entity that took effect at its offset."""
    return next_offset.isNull() | (next_offset != F.col("at_offset"))


def with_leg_ends(rows: DataFrame, legs: DataFrame) -> DataFrame:
    """What is still true at the end of a leg ends where the next one begins. Adds `committed`."""
    ends = legs.select("cluster_id", "leg", "next_base_offset", "next_base_time", "committed_to")
    lasts = F.col("valid_to_offset").isNull()
    return rows.join(F.broadcast(ends), ["cluster_id", "leg"]).withColumns(
        {
            "valid_to_offset": F.coalesce("valid_to_offset", "next_base_offset"),
            "valid_to_time": F.when(lasts, F.col("next_base_time")).otherwise(
                F.col("valid_to_time")
            ),
            "committed": F.coalesce(F.col("at_offset") < F.col("committed_to"), F.lit(False)),
        }
    )


def as_rows(rows: DataFrame, table: Table) -> DataFrame:
    """Exactly the columns of a history table, in its types."""
    made = {
        "valid_from_offset": F.col("at_offset"),
        "valid_from_time": F.col("at_time"),
        "state": F.when(F.col("valid_to_offset").isNull(), F.lit(OPEN)).otherwise(F.lit(CLOSED)),
    }
    return rows.select(*(made.get(name, F.col(name)).alias(name) for name in table.columns.names))
