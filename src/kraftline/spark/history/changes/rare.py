"""Everything else that happens, gathered for `words`: what it is and how it was, as JSON.

All kinds go through Python together, in one step: they are few, and each has its own shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import ACLS, CONTROLLERS, DELEGATION_TOKENS, Table
from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.spark.history.brokers import STATE
from kraftline.spark.history.changes.partitions import told_of
from kraftline.spark.history.effects import ABORT
from kraftline.spark.history.partitions import WHOLE
from kraftline.spark.history.staged import Staged, united
from kraftline.spark.history.topics import LIFE
from kraftline.spark.history.validity import ORDER

_MOMENT = ("cluster_id", "leg", "at_offset", "at_time", "epoch")
GATHERED = (*_MOMENT, "what", "said")


def gathered(what: str, rows: DataFrame, *said: Column) -> DataFrame:
    """Rows as GATHERED; `said` becomes a JSON object."""
    json = F.to_json(F.struct(*said), {"ignoreNullFields": "false"})
    return rows.select(*_MOMENT, F.lit(what).alias("what"), json.alias("said"))


def puts(
    what: str, events: DataFrame, table: Table, *, columns: Sequence[str] | None = None
) -> DataFrame:
    """Events of a table that has one record per state: how it was and how it is, where they
    differ."""
    names = table.columns.names
    own = list(columns or names[1 : names.index("valid_from_offset")])
    entity = Window.partitionBy("cluster_id", "leg", *table.keys).orderBy(*ORDER)
    now = F.when(F.col("there"), F.struct(*own))
    pairs = events.withColumn("now", now).withColumn("was", F.lag("now").over(entity))
    told = pairs.where(F.col("unit").isNotNull() & ~F.col("now").eqNullSafe(F.col("was")))
    return gathered(what, told, *map(F.col, table.keys), F.col("was"), F.col("now"))


def brokers(events: DataFrame) -> DataFrame:
    now = F.when(F.col("there"), F.struct(*STATE))
    told = events.where(F.col("unit").isNotNull() & ~now.eqNullSafe(F.col("before")))
    return gathered("broker", told, F.col("broker"), F.col("before").alias("was"), now.alias("now"))


def controllers(events: DataFrame) -> DataFrame:
    return puts("controller", events, CONTROLLERS)


def acls(events: DataFrame) -> DataFrame:
    return puts("acl", events, ACLS)


def tokens(events: DataFrame) -> DataFrame:
    """With the time in ms, as records have it."""
    ms = events.withColumn("expiration_ms", F.unix_millis("expiration_time"))
    own = ("owner", "requester", "renewers", "issue_time", "expiration_ms", "max_time")
    return puts("token", ms, DELEGATION_TOKENS, columns=own)


def quotas(events: DataFrame) -> DataFrame:
    entity = Window.partitionBy("cluster_id", "leg", "entity_text", "key").orderBy(*ORDER)
    now = F.when(F.col("there"), F.col("value"))
    pairs = events.withColumn("now", now).withColumn("was", F.lag("now").over(entity))
    told = pairs.where(F.col("unit").isNotNull() & ~F.col("now").eqNullSafe(F.col("was")))
    return gathered("quota", told, *map(F.col, ("entity", "key", "was", "now")))


def scram(events: DataFrame) -> DataFrame:
    """Secrets are not kept: credentials that are set again count as others."""
    user = Window.partitionBy("cluster_id", "leg", "user", "mechanism").orderBy(*ORDER)
    now = F.when(F.col("there"), F.col("iterations"))
    pairs = events.withColumn("now", now).withColumn("was", F.lag("now").over(user))
    told = pairs.where(
        F.col("unit").isNotNull() & (F.col("now").isNotNull() | F.col("was").isNotNull())
    )
    return gathered("scram", told, *map(F.col, ("user", "mechanism", "was", "now")))


def features(events: DataFrame) -> DataFrame:
    """A level that nobody takes is told of all the same, and is not what was before the next."""
    earlier = (
        Window.partitionBy("cluster_id", "leg", "feature")
        .orderBy(*ORDER)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    taken = F.when(F.col("taken"), F.col("level"))
    pairs = events.withColumn("was", F.last(taken, ignorenulls=True).over(earlier))
    told = pairs.where(F.col("unit").isNotNull())
    return gathered("feature", told, F.col("feature"), F.col("was"), F.col("level").alias("now"))


def configs(events: DataFrame, lives: DataFrame) -> DataFrame:
    """Without those that a topic was created with and those that went with it: its own change
    tells of them."""
    key = Window.partitionBy("cluster_id", "leg", "resource_type", "resource", "name").orderBy(
        *ORDER
    )
    pairs = events.withColumns(
        {
            "was_there": F.coalesce(F.lag("there").over(key), F.lit(False)),
            "was": F.lag("value").over(key),
        }
    )
    same = F.col("there").eqNullSafe(F.col("was_there")) & F.col("was").eqNullSafe(F.col("value"))
    # Of a secret nobody knows whether it is the same.
    told = pairs.where(
        F.col("unit").isNotNull()
        & ~F.col("with_topic")
        & (F.col("there") | F.col("was_there"))
        & (~same | (F.col("is_secret") & F.col("there")))
    )
    created = lives.where(F.col("began_unit").isNotNull()).select(
        "cluster_id",
        "leg",
        F.col("began_unit").alias("unit"),
        F.col("topic").alias("resource"),
        F.lit("topic").alias("resource_type"),
        F.lit(True).alias("there"),
    )
    others = told.join(created, created.columns, "left_anti")
    columns = ("resource_type", "resource", "name", "is_secret", "there", "was_there", "was")
    return gathered("config", others, *map(F.col, columns), F.col("value").alias("now"))


def topics_created(lives: DataFrame, steps: DataFrame, config_events: DataFrame) -> DataFrame:
    """Topics that outlast the unit that created them, with their partitions and configs there."""
    there = ~F.col("removed") | ~F.col("next_unit").eqNullSafe(F.col("began_unit"))
    found = lives.where(F.col("began_unit").isNotNull() & there)
    first = (F.col("how") == WHOLE) & (F.col("unit") == F.col("began_unit"))
    partitions = steps.where(first).groupBy(*LIFE).agg(_factors().alias("factors"))
    set_ = F.struct("offset", "name", "value", "is_secret")
    with_it = (
        config_events.where((F.col("resource_type") == "topic") & F.col("there"))
        .groupBy(
            "cluster_id", "leg", F.col("unit").alias("began_unit"), F.col("resource").alias("topic")
        )
        .agg(F.sort_array(F.collect_list(set_)).alias("configs"))
    )
    rows = (
        found.join(partitions, [*LIFE], "left")
        .join(with_it, ["cluster_id", "leg", "began_unit", "topic"], "left")
        .withColumns(
            {
                "at_offset": F.col("began_at"),
                "at_time": F.col("began_time"),
                "epoch": F.col("began_epoch"),
            }
        )
    )
    return gathered("topic created", rows, *map(F.col, ("topic", "topic_id", "factors", "configs")))


def topics_deleted(lives: DataFrame, steps: DataFrame) -> DataFrame:
    last = steps.where(F.col("removed") & F.col("next_at").isNull())
    partitions = last.groupBy(*LIFE).agg(_factors().alias("factors"))
    rows = (
        lives.where("removed")
        .join(partitions, [*LIFE], "left")
        .withColumns(
            {
                "at_offset": F.col("next_at"),
                "at_time": F.col("next_time"),
                "epoch": F.col("next_epoch"),
            }
        )
    )
    return gathered("topic deleted", rows, *map(F.col, ("topic", "topic_id", "factors")))


def partitions_added(steps: DataFrame) -> DataFrame:
    """New partitions of topics that were there, with how many there are then."""
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
        )
    )
    so_far = Window.partitionBy(*LIFE).orderBy("offset")
    counted = units.withColumn("total", F.sum("count").over(so_far))
    added = counted.where(
        F.col("unit").isNotNull() & ~F.col("unit").eqNullSafe(F.col("began_unit"))
    )
    return gathered("partitions added", added, *map(F.col, ("topic", "count", "total", "first")))


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
        state = staged.of("ZK_MIGRATION_STATE_RECORD", state=F.col("r")["zk_migration_state"])
        found.append(gathered("migration", state.where(F.col("unit").isNotNull()), F.col("state")))
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
