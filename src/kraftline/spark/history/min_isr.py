"""`min.insync.replicas` over time: of a topic, else of all brokers, else Kafka's own 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.inspect.cluster.health import MIN_ISR

_DEFAULT: Final = 1
_ONE: Final = ["cluster_id", "leg"]
_SPANS: Final = (
    "array<struct<from:bigint,to:bigint,value:int,from_time:timestamp,to_time:timestamp,"
    "opened:boolean>>"
)


def with_min_isr(lives: DataFrame, settings: DataFrame | None) -> DataFrame:
    """Lives of topics with `topic_min_isr` and `default_min_isr`: when which value held, null
    where none was ever set. `settings` are rows of configs with their leg."""
    if settings is None:
        nothing = F.lit(None).cast(_SPANS)
        return lives.withColumns({"topic_min_isr": nothing, "default_min_isr": nothing})
    value = F.when(F.col("value").rlike("^[0-9]{1,9}$"), F.col("value").cast("int"))
    span = F.struct(
        F.col("at_offset").alias("from"),
        F.col("valid_to_offset").alias("to"),
        value.alias("value"),
        F.col("at_time").alias("from_time"),
        F.col("valid_to_time").alias("to_time"),
        "opened",
    )
    # A value that is no number, or 0, is as good as none.
    found = settings.where((F.col("name") == MIN_ISR) & (value > 0))
    of_topics = (
        found.where(F.col("resource_type") == "topic")
        .groupBy(*_ONE, F.col("resource").alias("topic"))
        .agg(F.collect_list(span).alias("topic_min_isr"))
    )
    of_all = (
        found.where((F.col("resource_type") == "broker") & (F.col("resource") == ""))
        .groupBy(*_ONE)
        .agg(F.collect_list(span).alias("default_min_isr"))
    )
    return lives.join(of_topics, [*_ONE, "topic"], "left").join(F.broadcast(of_all), _ONE, "left")


def min_isr_at(offset: Column) -> Column:
    """The value that held at an offset."""
    return _holding(lambda start, end: (start <= offset) & (end.isNull() | (offset < end)))


def min_isr_before(offset: Column) -> Column:
    """The value that held just before."""
    return _holding(lambda start, end: (start < offset) & (end.isNull() | (offset <= end)))


def _holding(held: Callable[[Column, Column], Column]) -> Column:
    def of(spans: str) -> Column:
        found = F.filter(F.col(spans), lambda span: held(span["from"], span["to"]))
        # Most topics have none: no look into a list that is not there.
        return F.when(F.col(spans).isNotNull(), F.get(found, F.lit(0))["value"])

    return F.coalesce(of("topic_min_isr"), of("default_min_isr"), F.lit(_DEFAULT))


def moments() -> Column:
    """When a value came or went since the last build: an array of offset and time."""
    both = F.concat(
        F.coalesce("topic_min_isr", F.array().cast(_SPANS)),
        F.coalesce("default_min_isr", F.array().cast(_SPANS)),
    )

    def moment(offset: Column, time: Column) -> Column:
        return F.struct(offset.alias("offset"), time.alias("time"))

    began = F.transform(
        F.filter(both, lambda span: ~span["opened"]),
        lambda span: moment(span["from"], span["from_time"]),
    )
    ended = F.transform(
        F.filter(both, lambda span: span["to"].isNotNull()),
        lambda span: moment(span["to"], span["to_time"]),
    )
    return F.array_distinct(F.concat(began, ended))
