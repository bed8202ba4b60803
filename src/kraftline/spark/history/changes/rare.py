"""Everything else that happens, gathered for `words`: what it is and how it was, as JSON.

All kinds go through Python together, in one step: they are few, and each has its own shape.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.spark.history.changes.found import Found
from kraftline.spark.history.changes.partitions import told_of
from kraftline.spark.history.effects import ABORT
from kraftline.spark.history.features import features as feature_levels
from kraftline.spark.history.staged import Staged, fields, united
from kraftline.spark.history.topics import LIFE
from kraftline.spark.history.validity import ORDER

_MOMENT: Final = ("cluster_id", "leg", "at_offset", "at_time", "epoch")
GATHERED: Final = (*_MOMENT, "what", "said")
# Tables of which a change is told by how a thing was and how it is.
TOLD_BY_STATE: Final = (
    "brokers",
    "controllers",
    "configs",
    "acls",
    "client_quotas",
    "scram",
    "delegation_tokens",
)


def gathered(what: str, rows: DataFrame, *said: Column) -> DataFrame:
    """Rows as GATHERED; `said` becomes a JSON object."""
    json = F.to_json(F.struct(*said), {"ignoreNullFields": "false"})
    return rows.select(*_MOMENT, F.lit(what).alias("what"), json.alias("said"))


def things(entities: DataFrame) -> DataFrame:
    """Whatever has one row for each of its states: how it was and how it is, where they differ."""
    state, there = F.col("state"), F.col("state").isNotNull()
    # Of secrets nobody knows whether they are the same.
    is_secret = there & (
        (F.col("table") == "scram") | F.coalesce(state["configs"]["is_secret"], F.lit(False))
    )
    told = entities.where(
        F.col("table").isin(*TOLD_BY_STATE)
        & F.col("unit").isNotNull()
        & ~F.col("silent")
        & (~state.eqNullSafe(F.col("was")) | is_secret)
    )
    return pairs(told.withColumnRenamed("state", "now"))


def pairs(rows: DataFrame) -> DataFrame:
    """Rows with `table`, `was` and `now` as GATHERED."""
    said = F.to_json(F.struct("was", "now"), {"ignoreNullFields": "false"})
    return rows.select(*_MOMENT, F.col("table").alias("what"), said.alias("said"))


def features(staged: Staged) -> DataFrame:
    """A level that nobody takes is told of all the same, and is not what was before the next."""
    ((record_type, (there, columns)),) = feature_levels().items()
    said = {**columns, "taken": there.isNotNull()}
    opened = {name: F.col(name) for name in columns}
    events = united(
        staged.events({record_type: said}),
        staged.opened("features", {**opened, "taken": F.lit(True)}),
    )
    earlier = (
        Window.partitionBy("cluster_id", "leg", "feature")
        .orderBy(*ORDER)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    taken = F.when(F.col("taken"), F.col("level"))
    told = events.withColumn("was", F.last(taken, ignorenulls=True).over(earlier))
    told = told.where(F.col("unit").isNotNull())
    return gathered("feature", told, F.col("feature"), F.col("was"), F.col("level").alias("now"))


def topics(found: Found) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Topics created, with the partitions and configs that they are created with; topics deleted;
    and partitions added to topics that were there."""
    lives, steps = found.lives, found.steps
    # Each partition's first record, by the records that took effect with it.
    units = (
        steps.where(~F.col("had_before"))
        .groupBy(*LIFE, "topic", "began_unit", "unit")
        .agg(
            F.min("offset").alias("offset"),
            F.min("at_offset").alias("at_offset"),
            F.min("at_time").alias("at_time"),
            F.min("epoch").alias("epoch"),
            F.count("*").alias("count"),
            F.min_by(F.struct("partition", "replicas"), "offset").alias("first"),
            _factors().alias("factors"),
        )
    )
    so_far = Window.partitionBy(*LIFE).orderBy("offset")
    created_with = F.col("unit").eqNullSafe(F.col("began_unit")) & F.col("unit").isNotNull()
    units = units.withColumns({"total": F.sum("count").over(so_far), "created_with": created_with})
    added = units.where(F.col("unit").isNotNull() & ~F.col("created_with"))
    new = units.where("created_with").select(*LIFE, "factors")
    last = steps.where(F.col("removed") & F.col("next_at").isNull())
    gone = last.groupBy(*LIFE).agg(_factors().alias("factors"))
    return (
        _created(lives, new, found.config_events),
        gathered(
            "topic deleted",
            _at(lives.where("removed").join(gone, [*LIFE], "left"), "next"),
            *map(F.col, ("topic", "topic_id", "factors")),
        ),
        gathered("partitions added", added, *map(F.col, ("topic", "count", "total", "first"))),
    )


def _created(lives: DataFrame, partitions: DataFrame, config_events: DataFrame) -> DataFrame:
    """Topics that outlast the unit that created them."""
    there = ~F.col("removed") | ~F.col("next_unit").eqNullSafe(F.col("began_unit"))
    found = lives.where(F.col("began_unit").isNotNull() & there)
    configs = (
        config_events.where(F.col("created") & F.col("there"))
        .groupBy(
            "cluster_id",
            "leg",
            F.col("unit").alias("began_unit"),
            F.col("resource").alias("topic"),
        )
        .agg(F.sort_array(F.collect_list(F.struct("offset", "name", "value"))).alias("configs"))
    )
    with_partitions = found.join(partitions, [*LIFE], "left")
    rows = with_partitions.join(configs, ["cluster_id", "leg", "began_unit", "topic"], "left")
    said = ("topic", "topic_id", "factors", "configs")
    return gathered("topic created", _at(rows, "began"), *map(F.col, said))


def _at(lives: DataFrame, which: str) -> DataFrame:
    """At the moment that a life began, or at that of the event that ended it."""
    return lives.withColumns(
        {
            "at_offset": F.col(f"{which}_at"),
            "at_time": F.col(f"{which}_time"),
            "epoch": F.col(f"{which}_epoch"),
        }
    )


def partitions_changed(steps: DataFrame) -> DataFrame:
    """Steps that say more than who leads and who is in sync, and more than bookkeeping."""
    was, special = F.col("before"), F.array(F.lit(str(UNASSIGNED)), F.lit(str(MIGRATING)))
    moved = F.lit(False)
    for name in ("replicas", "adding_replicas", "removing_replicas"):
        moved = moved | (was[name] != F.col(name))
    elr = (was["elr"] != F.col("elr")) & F.col("before_isr").isNull()
    now = F.col("directories")
    known = F.array_except(F.array_except(was["directories"], special), now)
    directories = (was["directories"] != now) & (
        (F.size(known) > 0) | F.array_contains(now, str(LOST))
    )
    told = told_of(steps).where(was.isNotNull() & (moved | elr | directories))
    after = F.struct(
        "replicas", "adding_replicas", "removing_replicas", "elr", "last_known_elr", "directories"
    )
    isr = F.coalesce("before_isr", "isr").alias("was_isr")
    return gathered(
        "partition",
        told,
        *map(F.col, ("topic", "partition", "isr", "leader", "before_leader")),
        isr,
        was.alias("was"),
        after.alias("now"),
    )


def log(staged: Staged) -> DataFrame | None:
    """Control records, the migration from ZooKeeper, and transactions that were aborted."""
    found = []
    for kind in ("LEADER_CHANGE", "KRAFT_VOTERS", "KRAFT_VERSION"):
        if staged.has(kind):
            rows = staged.records.where((F.col("type") == kind) & ~F.col("in_snapshot"))
            placed = rows.withColumns({"at_offset": F.col("offset"), "at_time": F.col("log_time")})
            found.append(gathered("control", placed, *map(F.col, ("type", "payload", "epoch"))))
    if staged.has("ZK_MIGRATION_STATE_RECORD"):
        state = fields("ZK_MIGRATION_STATE_RECORD")["zk_migration_state"]
        events = staged.events({"ZK_MIGRATION_STATE_RECORD": {"state": state}})
        found.append(gathered("migration", events.where(F.col("unit").isNotNull()), F.col("state")))
    if staged.transactions is not None:
        found.append(_aborted(staged, staged.transactions))
    return united(*found) if found else None


def _aborted(staged: Staged, transactions: DataFrame) -> DataFrame:
    aborted = transactions.where(F.col("ended_by") == ABORT).withColumns(
        {"at_offset": F.col("end"), "at_time": F.col("end_time")}
    )
    # A new controller's own record may stand between those of the transaction.
    controls = staged.records.where(F.col("type") == "LEADER_CHANGE").select(
        "cluster_id", "leg", F.col("offset").alias("control")
    )
    between = F.col("control").between(F.col("begin"), F.col("end"))
    key = ["cluster_id", "leg", "begin"]
    others = (
        aborted.join(F.broadcast(controls), ["cluster_id", "leg"])
        .where(between)
        .groupBy(*key)
        .agg(F.count("*").alias("others"))
    )
    count = F.col("end") - F.col("begin") - 1 - F.coalesce("others", F.lit(0))
    rows = aborted.join(others, key, "left").withColumn("count", count)
    return gathered("transaction", rows, *map(F.col, ("name", "count", "reason")))


def _factors() -> Column:
    """How many replicas the partitions have, in their order."""
    each = F.struct("partition", "offset", F.size("replicas").alias("factor"))
    return F.sort_array(F.collect_list(each))
