"""What was unhealthy, and from when to when: spans of partitions and of brokers in trouble.

A step of a partition that turns a trouble on or off is an event of it; so is a new value of
min.insync.replicas for the partitions that stand still meanwhile.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.inspect.cluster.health import (
    AT_MIN_ISR,
    NOT_PREFERRED,
    OFFLINE,
    REASSIGNING,
    RECOVERING_STATE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
)
from kraftline.lake.tables import HEALTH
from kraftline.metadata.partition import NO_LEADER
from kraftline.spark.history.min_isr import min_isr_at, min_isr_before, moments
from kraftline.spark.history.partitions import partition_rows
from kraftline.spark.history.staged import MOMENT, Staged, united
from kraftline.spark.history.topics import LIFE
from kraftline.spark.history.troubles import (
    BITS,
    BROKER_DOWN,
    MIN_ISR_BITS,
    min_isr_troubles,
    wanted_replicas,
)
from kraftline.spark.history.validity import spans

_SPAN = ("kind", "topic", "topic_id", "partition", "broker", "detail", "there")


def health(
    staged: Staged, steps: DataFrame, lives: DataFrame, broker_events: DataFrame
) -> DataFrame:
    """The table `health`. `lives` are with min.insync.replicas."""
    span = {name: F.col(name) for name in _SPAN if name != "there"}
    events = united(
        _of_partitions(steps),
        _of_removals(steps),
        _of_settings(steps, lives),
        _of_brokers(broker_events),
        staged.opened("health", {**span, "there": F.lit(True)}),
    )
    return spans(events, staged.legs, HEALTH)


def _of_partitions(steps: DataFrame) -> DataFrame:
    turned = F.col("troubles").bitwiseXOR(F.col("troubles_before"))
    found = steps.where(~F.col("opened") & (turned != 0)).withColumn("turned", turned)
    return _events(found, _details())


def _of_removals(steps: DataFrame) -> DataFrame:
    """With its topic a partition's troubles are over."""
    # A row that was open may have come to its min.insync.replicas later than it began.
    over = F.col("troubles").bitwiseOR(F.lit(MIN_ISR_BITS))
    ended = steps.where(F.col("next_at").isNull() & F.col("removed")).withColumns(
        {
            "turned": over,
            "troubles": F.lit(0),
            "offset": F.col("ended_at"),
            "index": F.lit(0),
            "at_offset": F.col("ended_at"),
            "at_time": F.col("ended_time"),
        }
    )
    return _events(ended, {})


def _of_settings(steps: DataFrame, lives: DataFrame) -> DataFrame:
    """Partitions that stood still while min.insync.replicas changed."""
    changes = lives.select(
        *LIFE,
        "topic_min_isr",
        "default_min_isr",
        F.explode(moments()).alias("moment"),
    )
    in_sync = F.size("isr")
    wanted = wanted_replicas(F.col("replicas"), F.col("adding_replicas"))
    at = F.col("moment")["offset"]
    met = (
        partition_rows(steps)
        .drop("min_isr")
        .join(F.broadcast(changes), [*LIFE])
        .where(
            (F.col("at_offset") < at)
            & (F.col("valid_to_offset").isNull() | (at < F.col("valid_to_offset")))
        )
        .withColumns({"min_isr": min_isr_at(at), "min_isr_before": min_isr_before(at)})
        .withColumns(
            {
                "troubles": min_isr_troubles(in_sync, wanted, F.col("min_isr")),
                "troubles_before": min_isr_troubles(in_sync, wanted, F.col("min_isr_before")),
            }
        )
        .withColumns(
            {
                "turned": F.col("troubles").bitwiseXOR(F.col("troubles_before")),
                "at_offset": at,
                "at_time": F.col("moment")["time"],
                "offset": at,
                "index": F.lit(0),
            }
        )
    )
    return _events(met.where(F.col("turned") != 0), _details())


def _of_brokers(events: DataFrame) -> DataFrame:
    is_there = F.col("there")
    down = F.when(is_there, F.col("fenced") | F.col("in_controlled_shutdown"))
    detail = (
        F.when(~is_there, F.lit("unregistered"))
        .when(F.col("in_controlled_shutdown"), F.lit("shutting down"))
        .otherwise(F.lit("fenced"))
    )
    nothing = F.lit(None).cast("string")
    told = events.where(~F.col("opened") & (is_there | F.col("before").isNotNull()))
    return told.select(
        *MOMENT,
        F.lit(BROKER_DOWN).alias("kind"),
        nothing.alias("topic"),
        nothing.alias("topic_id"),
        F.lit(None).cast("int").alias("partition"),
        "broker",
        detail.alias("detail"),
        F.coalesce(down, F.lit(True)).alias("there"),
    )


def _events(found: DataFrame, details: dict[str, Column]) -> DataFrame:
    """A row for every bit of `turned`, on or off as `troubles` has it."""

    def has(column: str, kind: str) -> Column:
        return F.col(column).bitwiseAND(F.lit(BITS[kind])) != 0

    each = F.array_compact(
        F.array(
            *(
                F.when(
                    has("turned", kind),
                    F.struct(
                        F.lit(kind).alias("kind"),
                        has("troubles", kind).alias("there"),
                        details.get(kind, F.lit(None)).cast("string").alias("detail"),
                    ),
                )
                for kind in BITS
            )
        )
    )
    return found.select(
        *MOMENT, "topic", "topic_id", "partition", F.explode(each).alias("each")
    ).select(
        *MOMENT,
        F.col("each")["kind"].alias("kind"),
        "topic",
        "topic_id",
        "partition",
        F.lit(None).cast("int").alias("broker"),
        F.col("each")["detail"].alias("detail"),
        F.col("each")["there"].alias("there"),
    )


def _details() -> dict[str, Column]:
    """What to know of a trouble when it begins."""

    def listed(column: str) -> Column:
        return F.array_join(F.col(column), ", ")

    leader, preferred = F.col("leader"), F.get(F.col("replicas"), F.lit(0))
    in_sync = F.concat(
        F.size("isr").cast("string"),
        F.lit(" of "),
        wanted_replicas(F.col("replicas"), F.col("adding_replicas")).cast("string"),
        F.lit(" in sync"),
    )
    least = F.concat(in_sync, F.lit(", min.insync.replicas is "), F.col("min_isr").cast("string"))
    was_led = F.col("before_leader").isNotNull() & (F.col("before_leader") != NO_LEADER)
    adding = F.when(
        F.size("adding_replicas") > 0, F.concat(F.lit("adding "), listed("adding_replicas"))
    )
    removing = F.when(
        F.size("removing_replicas") > 0, F.concat(F.lit("removing "), listed("removing_replicas"))
    )
    return {
        OFFLINE: F.when(was_led, F.concat(F.lit("was led by "), F.col("before_leader"))),
        UNDER_REPLICATED: in_sync,
        UNDER_MIN_ISR: least,
        AT_MIN_ISR: least,
        RECOVERING_STATE: F.concat(F.lit("led by "), leader),
        REASSIGNING: F.concat_ws(", ", adding, removing),
        NOT_PREFERRED: F.concat(F.lit("led by "), leader, F.lit(", preferred is "), preferred),
    }
