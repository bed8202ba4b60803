"""What a build starts from: records by type with their effects, legs, and rows that are open."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kraftline.spark.history.effects import MARKERS, transactions, with_effects
from kraftline.spark.record_table import struct_name, struct_types

OpenRows: TypeAlias = Callable[[str], DataFrame | None]
# Computes a frame once for all that is made of it: to persist it, or to write and read it.
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


# All but partitions: read once, and kept.
_MANY: Final = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "NO_OP_RECORD")


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

    def of(self, record_type: str, **columns: Column) -> DataFrame:
        """The events of one type: MOMENT, and columns that are made of its struct `r`."""
        if record_type in _MANY:
            found = with_effects(self._typed(record_type), self.transactions)
        else:
            found = self._few
        # Where there are none, Spark drops all that would follow.
        wanted = F.col("type") == record_type if self.has(record_type) else F.lit(False)
        found = found.where(wanted).withColumn("opened", F.lit(False))
        if record_type in struct_types():
            found = found.withColumn("r", F.col(struct_name(record_type)))
        return found.select(*MOMENT, *(column.alias(name) for name, column in columns.items()))

    def _typed(self, *types: str) -> DataFrame:
        return self.records.where(F.col("type").isin(*types))

    @cached_property
    def _few(self) -> DataFrame:
        types = [name for name in struct_types() if name not in _MANY]
        structs = [struct_name(name) for name in types]
        found = with_effects(self._typed(*types), self.transactions)
        own = [name for name in MOMENT if name != "opened"]
        return self.keep(found.select(*own, "type", *structs))

    def opened(self, table: str, **columns: Column) -> DataFrame | None:
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


def united(*frames: DataFrame | None) -> DataFrame:
    """All rows of those that are there, by column name."""
    found = [frame for frame in frames if frame is not None]
    out = found[0]
    for frame in found[1:]:
        out = out.unionByName(frame)
    return out
