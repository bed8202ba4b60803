"""From events of entities to rows that say from when to when each was true.

An event says what an entity is after it, or that it is not there (`there` is false). Of several
that took effect at one offset only the last counts; one that changes nothing makes no row.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import CLOSED, OPEN, Table

ORDER: Final = ("offset", "index")
_VALIDITY: Final = (
    "valid_from_offset",
    "valid_from_time",
    "valid_to_offset",
    "valid_to_time",
    "committed",
    "state",
)


class Repeat(Enum):
    """What an entity that was there already is when an event says again what it is."""

    SAME_IF_EQUAL = "the same if all columns are"
    SAME = "the same"  # for spans: what was said first stays
    NEW = "new"  # where what makes it different is not kept, as of secrets


def history_rows(
    events: DataFrame, legs: DataFrame, table: Table, repeat: Repeat = Repeat.SAME_IF_EQUAL
) -> DataFrame:
    """The rows of a history table from events with its own columns, MOMENT and `there`."""
    return as_rows(valid_rows(events, legs, table, repeat), table)


def valid_rows(
    events: DataFrame, legs: DataFrame, table: Table, repeat: Repeat = Repeat.SAME_IF_EQUAL
) -> DataFrame:
    """The same, still with MOMENT: events that began something, and when it ended."""
    entity = Window.partitionBy("cluster_id", "leg", *table.keys).orderBy(*ORDER)
    last = last_at_offset(F.lead("at_offset").over(entity))
    counted = events.withColumn("last", last).where("last")
    there, was_there = F.col("there"), F.coalesce("was_there", F.lit(False))
    if repeat is Repeat.SAME_IF_EQUAL:
        said = F.struct(F.lit(0), *_payload(table))
        counted = counted.withColumn("before", F.lag(said).over(entity))
        changed = ~there | ~F.col("before").eqNullSafe(said)
    else:
        changed = ~there if repeat is Repeat.SAME else F.lit(True)
    counted = counted.withColumn("was_there", F.lag("there").over(entity))
    kept = counted.where((there | was_there) & (~was_there | changed))
    ended = kept.withColumns(
        {
            "valid_to_offset": F.lead("at_offset").over(entity),
            "valid_to_time": F.lead("at_time").over(entity),
        }
    ).where("there")
    return with_leg_ends(ended, legs)


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


def _payload(table: Table) -> list[str]:
    told = ("cluster_id", *table.keys, *_VALIDITY)
    return [name for name in table.columns.names if name not in told]
