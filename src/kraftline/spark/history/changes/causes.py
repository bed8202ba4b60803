"""Why a replica lost its place: from records of the same unit, or from the state of its broker.

The rules are those of `inspect.cluster.causes`. Brokers' states are few: they are looked up by
broker and by blocks of offsets.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.spark.history.staged import Staged
from kraftline.spark.history.validity import ORDER

# How many of the replicas that left are asked about: no partition has more that could leave.
ASKED: Final = 4
_LEAST_BITS: Final = 10
_BLOCKS: Final = 256
_WHERE: Final = ["cluster_id", "leg"]


class Causes:
    """What is known of brokers, ready to be joined to rows with MOMENT."""

    def __init__(self, staged: Staged, broker_events: DataFrame) -> None:
        lengths = [row["end_offset"] - row["base_offset"] for row in staged.leg_rows]
        self._bits = max(_LEAST_BITS, (max(lengths, default=0) // _BLOCKS).bit_length())
        self._units = _units(broker_events)
        self._states = self._in_blocks(broker_events, staged.legs)

    def joined(self, rows: DataFrame) -> DataFrame:
        """Rows with `cause`. Of a row is wanted: `certain` (a cause that is known already), `asks`
        (brokers that went) with their `places` (directories), `returned` (a broker that came back)
        and `otherwise` (a cause if nothing else is known)."""
        found = rows.join(F.broadcast(self._units), [*_WHERE, "unit"], "left").withColumn(
            "block", self._block(F.col("offset"))
        )
        known = [F.col("certain")]
        for number in range(ASKED):
            asked = F.get(F.col("asks"), F.lit(number))
            found = found.withColumn("asked", F.when(F.col("certain").isNull(), asked))
            state = self._states.select(
                *(F.col(name).alias(f"{name}_{number}") for name in self._states.columns)
            )
            found = found.join(F.broadcast(state), _holds(number), "left").drop("asked")
            known.append(_why(number, asked, F.get(F.col("places"), F.lit(number))))
        back = _of_unit(F.col("returned"), "back")
        cause = F.coalesce(*known, back, F.col("otherwise"))
        return found.withColumn("cause", cause)

    def _block(self, offset: Column) -> Column:
        return F.shiftright(offset, self._bits)

    def _in_blocks(self, events: DataFrame, legs: DataFrame) -> DataFrame:
        """Registered brokers: from one record (excluded) to the next (included)."""
        broker = Window.partitionBy(*_WHERE, "broker").orderBy(*ORDER)
        ends = legs.select(*_WHERE, "end_offset")
        spans = events.withColumn("to", F.lead("offset").over(broker)).where("there")
        until = F.coalesce("to", F.greatest("offset", "end_offset"))
        blocks = F.sequence(self._block(F.col("offset")), self._block(until))
        return spans.join(F.broadcast(ends), _WHERE).select(
            *_WHERE,
            "broker",
            F.explode(blocks).alias("block"),
            F.col("offset").alias("from"),
            "to",
            "fenced",
            F.col("in_controlled_shutdown").alias("stopping"),
            "directories",
        )


def _units(events: DataFrame) -> DataFrame:
    """What the records of a unit say of brokers: `told`, a list of broker, out, back."""
    broker = F.col("broker").cast("string")
    before = F.col("before")
    restarted = (
        (F.col("how") == "registered")
        & before.isNotNull()
        & (before["incarnation_id"] != F.col("incarnation_id"))
    )
    later = F.col("how").isin("changed", "fenced")
    out = (
        F.when(restarted, F.lit(" restarted without a clean stop"))
        .when(F.col("how") == "unregistered", F.lit(" was unregistered"))
        .when(later & F.col("said_fenced"), F.lit(" was fenced"))
        .when(later & F.col("said_shutdown"), F.lit(" began a controlled shutdown"))
    )
    lost = F.size(F.array_except(before["directories"], F.col("said_directories"))) > 0
    less = F.when(
        (F.col("how") == "changed") & before.isNotNull() & lost, F.lit(" lost a directory")
    )
    back = F.when(later & ~F.col("said_fenced"), F.lit(" was unfenced"))

    def named(what: Column) -> Column:
        return F.concat(F.lit("broker "), broker, what)

    said = events.where(F.col("unit").isNotNull()).select(
        *_WHERE,
        "unit",
        "offset",
        "broker",
        named(out).alias("out"),
        named(less).alias("less"),
        named(back).alias("back"),
    )
    # The last one counts; a lost directory only where there is nothing else.
    last = F.when(F.col("out").isNotNull(), F.col("offset"))
    by_broker = said.groupBy(*_WHERE, "unit", "broker").agg(
        F.coalesce(F.max_by("out", last), F.max("less")).alias("out"), F.max("back").alias("back")
    )
    return (
        by_broker.where(F.col("out").isNotNull() | F.col("back").isNotNull())
        .groupBy(*_WHERE, "unit")
        .agg(F.collect_list(F.struct("broker", "out", "back")).alias("told"))
    )


def _of_unit(asked: Column, what: str) -> Column:
    found = F.filter(F.col("told"), lambda each: each["broker"] == asked)
    return F.when(F.col("told").isNotNull(), F.get(found, F.lit(0))[what])


def _holds(number: int) -> Column:
    def state(name: str) -> Column:
        return F.col(f"{name}_{number}")

    return (
        (F.col("cluster_id") == state("cluster_id"))
        & (F.col("leg") == state("leg"))
        & (F.col("block") == state("block"))
        & (F.col("asked") == state("broker"))
        & (state("from") < F.col("offset"))
        & (state("to").isNull() | (F.col("offset") <= state("to")))
    )


def _why(number: int, asked: Column, place: Column) -> Column:
    """Why a broker lost its place, in words; null if nobody knows or none is asked about."""

    def state(name: str) -> Column:
        return F.col(f"{name}_{number}")

    broker, directories = asked.cast("string"), state("directories")
    offline = (place == str(LOST)) | (
        ~place.isin(str(UNASSIGNED), str(MIGRATING))
        & (F.size(directories) > 0)
        & ~F.array_contains(directories, place)
    )

    def said(what: str) -> Column:
        return F.concat(F.lit("broker "), broker, F.lit(what))

    known = (
        F.when(state("broker").isNull(), said(" is not registered"))
        .when(state("stopping"), said(" is shutting down"))
        .when(state("fenced"), said(" is fenced"))
        .when(offline, F.concat(F.lit("its directory on broker "), broker, F.lit(" is offline")))
    )
    return F.when(asked.isNotNull(), F.coalesce(_of_unit(asked, "out"), known))
