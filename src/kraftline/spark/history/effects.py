"""When records took effect: at their own offset, or at the End of the transaction around them.

Of a transaction that was aborted, or that is open where its leg ends, nothing takes effect. As in
Kafka's loader, a Begin inside a transaction and an End or Abort outside of one do nothing.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"
MARKERS: Final = (BEGIN, END, ABORT)

# Transactions are looked up by blocks of so many offsets (a power of two).
_BLOCK_BITS: Final = 10


def transactions(records: DataFrame) -> DataFrame:
    """A row per transaction: cluster_id, leg, name, begin, end (both offsets of markers), ended_by,
    reason, epoch and end_time. `end` and what belongs to it are null for one that is open."""
    whole = Window.partitionBy("cluster_id", "leg").orderBy("offset")
    markers = records.where(F.col("type").isin(*MARKERS)).select(
        "cluster_id",
        "leg",
        "offset",
        "epoch",
        F.col("log_time").alias("time"),
        "type",
        (F.col("type") == BEGIN).alias("begins"),
        F.col("begin_transaction.name").alias("name"),
        F.col("abort_transaction.reason").alias("reason"),
    )
    # Of neighbours that all begin, or all end, only the first has a place.
    before = F.lag("begins").over(whole)
    placed = markers.withColumn("before", before).where(
        F.coalesce(F.col("begins") != F.col("before"), F.col("begins"))
    )
    return placed.select(
        "cluster_id",
        "leg",
        "begins",
        "name",
        F.col("offset").alias("begin"),
        F.lead("offset").over(whole).alias("end"),
        F.lead("time").over(whole).alias("end_time"),
        F.lead("type").over(whole).alias("ended_by"),
        F.lead("reason").over(whole).alias("reason"),
        F.lead("epoch").over(whole).alias("epoch"),
    ).where("begins")


def with_effects(records: DataFrame, found: DataFrame | None) -> DataFrame:
    """Records with `at_offset`, `at_time` and `unit` (the same for records that took effect
    together); without those that had no effect. `found` are the transactions, None if none."""
    own = F.when(~F.col("in_snapshot"), F.xxhash64("file", "position"))
    if found is None:
        return records.withColumns(
            {"at_offset": F.col("offset"), "at_time": F.col("log_time"), "unit": own}
        )
    blocks = F.sequence(_block("begin"), F.coalesce(_block("end"), _block("last")))
    around = found.withColumn("block", F.explode(blocks)).select(
        F.col("cluster_id").alias("t_cluster"),
        F.col("leg").alias("t_leg"),
        "block",
        F.col("begin").alias("t_begin"),
        F.coalesce("end", "last").alias("t_end"),
        (F.col("ended_by") == END).alias("t_took_effect"),
        F.col("end_time").alias("t_time"),
    )
    inside = (
        (F.col("cluster_id") == F.col("t_cluster"))
        & (F.col("leg") == F.col("t_leg"))
        & (_block("offset") == F.col("block"))
        & F.col("offset").between(F.col("t_begin"), F.col("t_end"))
        & ~F.col("in_snapshot")
    )
    joined = records.join(F.broadcast(around), inside, "left")
    apart = F.col("t_begin").isNull()
    return (
        joined.where(apart | F.col("t_took_effect"))
        .withColumns(
            {
                "at_offset": F.when(apart, F.col("offset")).otherwise(F.col("t_end")),
                "at_time": F.when(apart, F.col("log_time")).otherwise(F.col("t_time")),
                "unit": F.when(apart, own).otherwise(F.xxhash64(F.lit("end"), F.col("t_end"))),
            }
        )
        .drop("t_cluster", "t_leg", "block", "t_begin", "t_end", "t_took_effect", "t_time")
    )


def _block(offset: str) -> Column:
    return F.shiftright(F.col(offset), _BLOCK_BITS)
