"""What a build starts from: records by type with their effects, legs, and rows that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kraftline.spark.history.effects import MARKERS, transactions, with_effects
from kraftline.spark.record_table import struct_name

OpenRows: TypeAlias = Callable[[str], DataFrame | None]
# Computes a frame once for all that is made of it, and cuts it off from what it was made of.
Keep: TypeAlias = Callable[[DataFrame], DataFrame]

# Where an event stands in the log, when it took effect, and with which others. Within a leg
# records take effect in the order of (offset, index), also those of transactions.
MOMENT: Final = (
    "cluster_id",
    "leg",
    "offset",
    "index",
    "at_offset",
    "at_time",
    "unit",
    "epoch",
    "opened",  # it is a row that was open after the last build, and tells nothing new
)
# Rows that were open come before whatever is new at their offset.
_BEFORE_ALL: Final = -1


def fields(record_type: str) -> Column:
    """The struct of a record type."""
    return F.col(struct_name(record_type))


class Staged:
    """Records of a build. `keep` is given what several tables are made of."""

    def __init__(
        self, records: DataFrame, legs: DataFrame, open_rows: OpenRows, keep: Keep
    ) -> None:
        self.records = records.where(F.col("leg").isNotNull())
        self.legs = legs
        self.keep = keep
        self._open_rows = open_rows

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many rows there are of each type."""
        rows = self.records.groupBy("type").count().collect()
        return {row["type"]: row["count"] for row in rows}

    @cached_property
    def leg_rows(self) -> list[Row]:
        """The legs themselves: they are few."""
        return self.legs.collect()

    @cached_property
    def transactions(self) -> DataFrame | None:
        """As `effects.transactions` has them, with `last`, the end of the leg; None if none."""
        if not self.has(*MARKERS):
            return None
        ends = self.legs.select("cluster_id", "leg", F.col("end_offset").alias("last"))
        found = transactions(self.records).join(F.broadcast(ends), ["cluster_id", "leg"])
        return self.keep(found)

    def has(self, *types: str) -> bool:
        return any(self.counts.get(each) for each in types)

    def events(self, said: Mapping[str, Mapping[str, Column]]) -> DataFrame:
        """The records of some types in one reading: MOMENT, and for each type the columns that are
        made of its `fields`. A column that a type does not have is null."""
        columns = dict.fromkeys(name for found in said.values() for name in found)
        there = [record_type for record_type in said if self.has(record_type)]
        # Where there are none, Spark drops all that would follow.
        wanted = F.col("type").isin(*there) if there else F.lit(False)
        placed = with_effects(self.records.where(wanted), self.transactions)
        return placed.withColumn("opened", F.lit(False)).select(
            *MOMENT, *(_chosen(said, name).alias(name) for name in columns)
        )

    def opened(self, table: str, columns: Mapping[str, Column]) -> DataFrame | None:
        """Rows of continued legs that were open, as events; None if there are none."""
        rows = self._open_rows(table)
        if rows is None:
            return None
        continued = self.legs.where("continued").select("cluster_id", "leg")
        placed = rows.join(F.broadcast(continued), "cluster_id").withColumns(
            {
                "offset": F.col("valid_from_offset"),
                "index": F.lit(_BEFORE_ALL),
                "at_offset": F.col("valid_from_offset"),
                "at_time": F.col("valid_from_time"),
                "unit": F.lit(None).cast("bigint"),
                "epoch": F.lit(None).cast("int"),
                "opened": F.lit(True),
            }
        )
        return placed.select(*MOMENT, *(column.alias(name) for name, column in columns.items()))


def checkpointed(frame: DataFrame) -> DataFrame:
    """Kept by the executors, as long as something refers to it."""
    return frame.localCheckpoint()


def united(*frames: DataFrame | None) -> DataFrame:
    """All rows of those that are there, by column name; a column that one lacks is null."""
    found = [frame for frame in frames if frame is not None]
    out = found[0]
    for frame in found[1:]:
        out = out.unionByName(frame, allowMissingColumns=True)
    return out


def _chosen(said: Mapping[str, Mapping[str, Column]], name: str) -> Column:
    named = [(record_type, found[name]) for record_type, found in said.items() if name in found]
    (first, column), *others = named
    chosen = F.when(F.col("type") == first, column)
    for record_type, column in others:
        chosen = chosen.when(F.col("type") == record_type, column)
    return chosen
