"""Partitions: whole records, and changes that say only what is different.

One exchange by topic and one sort serve all that is made of partitions: the table, what changed,
and what was unhealthy. `partition_steps` is that pass; the rest selects from it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kraftline.lake.tables import PARTITIONS
from kraftline.metadata.partition import MIGRATING, NO_LEADER_CHANGE, RECOVERED, RECOVERING
from kraftline.spark.history.min_isr import min_isr_at, min_isr_before
from kraftline.spark.history.staged import MOMENT, Staged, fields, united
from kraftline.spark.history.topics import LIFE, inside_life
from kraftline.spark.history.troubles import troubles
from kraftline.spark.history.validity import ORDER, as_rows, last_at_offset, with_leg_ends

LISTS: Final = (
    "replicas",
    "isr",
    "adding_replicas",
    "removing_replicas",
    "elr",
    "last_known_elr",
    "directories",
)
# What a change may leave out.
_CARRIED: Final = (*LISTS, "leader", "leader_recovery_state")

WHOLE: Final = 0  # a Partition record, or a row that was open
CHANGE: Final = 1
CLEAR: Final = 2  # its ELR was cleared, by a ClearElr record of its topic or of all


def partition_steps(staged: Staged, lives: DataFrame) -> DataFrame:
    """A row per record of a partition: MOMENT, LIFE, topic, partition, `how` (WHOLE, CHANGE,
    CLEAR), the columns of the table as they are after it, next_at and next_time (of the next
    record, null for the last), ended_at/_time and removed (of its topic), and as it was before:
    `had_before`, before_leader, before_recovery, and where they differ before_isr and `before`
    (the other lists); `troubles` and `troubles_before` as bits.
    """
    placed = in_lives(_records(staged), lives)
    partition = Window.partitionBy(*LIFE, "partition").orderBy(*ORDER)
    if staged.has("CLEAR_ELR_RECORD"):
        placed = _with_clears(placed, _clears(staged, lives), partition)
    return _compared(_merged(placed, partition), partition)


def partitions(steps: DataFrame, legs: DataFrame) -> DataFrame:
    """The table `partitions`."""
    return as_rows(with_leg_ends(partition_rows(steps), legs), PARTITIONS)


def partition_rows(steps: DataFrame) -> DataFrame:
    """The steps that make a row: the last at their offset, of a topic that outlasts it."""
    ends = steps.where(last_at_offset(F.col("next_at"))).withColumns(
        {
            "valid_to_offset": F.coalesce("next_at", "ended_at"),
            "valid_to_time": F.coalesce("next_time", "ended_time"),
        }
    )
    lasting = F.col("at_offset") < F.col("valid_to_offset")
    return ends.where(F.col("valid_to_offset").isNull() | lasting)


def _records(staged: Staged) -> DataFrame:
    whole, change = fields("PARTITION_RECORD"), fields("PARTITION_CHANGE_RECORD")
    none = F.array().cast("array<int>")
    said = {
        "PARTITION_RECORD": {
            "how": F.lit(WHOLE),
            "topic_id": whole["topic_id"],
            "partition": whole["partition_id"],
            "replicas": whole["replicas"],
            "isr": whole["isr"],
            "adding_replicas": F.coalesce(whole["adding_replicas"], none),
            "removing_replicas": F.coalesce(whole["removing_replicas"], none),
            "leader": whole["leader"],
            "leader_recovery_state": whole["leader_recovery_state"],
            "leader_epoch": whole["leader_epoch"],
            "partition_epoch": whole["partition_epoch"],
            "elr": F.coalesce(whole["eligible_leader_replicas"], none),
            "last_known_elr": F.coalesce(whole["last_known_elr"], none),
            "directories": F.coalesce(whole["directories"], none.cast("array<string>")),
        },
        "PARTITION_CHANGE_RECORD": {
            "how": F.lit(CHANGE),
            "topic_id": change["topic_id"],
            "partition": change["partition_id"],
            "replicas": change["replicas"],
            "isr": change["isr"],
            "adding_replicas": change["adding_replicas"],
            "removing_replicas": change["removing_replicas"],
            "leader": F.nullif(change["leader"], F.lit(NO_LEADER_CHANGE)),
            "leader_recovery_state": F.nullif(
                change["leader_recovery_state"], F.lit(-1).cast("tinyint")
            ),
            "elr": change["eligible_leader_replicas"],
            "last_known_elr": change["last_known_elr"],
            "directories": change["directories"],
        },
    }
    own = [name for name in said["PARTITION_RECORD"] if name != "how"]
    opened = {"how": F.lit(WHOLE), **{name: F.col(name) for name in own}}
    # One reading for each type: the files of a type hold only its own struct.
    records = [staged.events({record_type: columns}) for record_type, columns in said.items()]
    # What no controller writes is passed over, as Kafka's own replay does.
    state = F.col("leader_recovery_state")
    known = state.isNull() | state.isin(RECOVERED, RECOVERING)
    named = F.col("replicas").isNotNull() & F.col("directories").isNotNull()
    directories = F.size("directories")
    fitting = ~named | (directories == 0) | (directories == F.size("replicas"))
    return united(
        *(found.where(known & fitting) for found in records), staged.opened("partitions", opened)
    )


def in_lives(rows: DataFrame, lives: DataFrame) -> DataFrame:
    """Records of topics that were there, with the life that they fall into and the least in-sync
    replicas at that moment and just before."""
    kept = lives.select(
        *LIFE,
        "topic",
        "next_offset",
        "next_index",
        "ended_at",
        "ended_time",
        "removed",
        "began_unit",
        "topic_min_isr",
        "default_min_isr",
    )
    # Both sides meet where the windows want them: no second exchange.
    joined = rows.join(kept.hint("shuffle_hash"), ["cluster_id", "leg", "topic_id"])
    inside = joined.where(inside_life(F.col("offset"), F.col("index")))
    return inside.withColumns(
        {
            "min_isr": min_isr_at(F.col("at_offset")),
            "min_isr_before": min_isr_before(F.col("at_offset")),
        }
    ).drop("next_offset", "next_index", "topic_min_isr", "default_min_isr")


def _clears(staged: Staged, lives: DataFrame) -> DataFrame:
    """ClearElr records by the life that they fall into."""
    name = fields("CLEAR_ELR_RECORD")["topic_name"]
    found = staged.events({"CLEAR_ELR_RECORD": {"name": name}})
    named = (F.col("name") == "") | (F.col("name") == F.col("topic"))
    kept = lives.select(*LIFE, "topic", "next_offset", "next_index")
    joined = kept.join(F.broadcast(found), ["cluster_id", "leg"])
    hit = joined.where(named & inside_life(F.col("offset"), F.col("index")))
    return hit.drop("name", "topic", "next_offset", "next_index")


def _with_clears(placed: DataFrame, clears: DataFrame, partition: WindowSpec) -> DataFrame:
    """Adds a row for each partition whose ELR a record cleared: where there was one to clear."""
    since = F.col("offset").alias("since_offset"), F.col("index").alias("since_index")
    moment = [name for name in MOMENT if name not in LIFE]
    kept = [name for name in placed.columns if name not in (*moment, *_CARRIED, "how")]
    there = placed.where(F.col("how") == WHOLE).select(*kept, *since)
    later = (F.col("offset") > F.col("since_offset")) | (
        (F.col("offset") == F.col("since_offset")) & (F.col("index") > F.col("since_index"))
    )
    empty = F.array().cast("array<int>")
    cleared = there.join(clears, [*LIFE]).where(later).drop("since_offset", "since_index")
    cleared = cleared.withColumns(
        {
            **{name: F.lit(None).cast(placed.schema[name].dataType) for name in _CARRIED},
            "leader_epoch": F.lit(None).cast("int"),
            "partition_epoch": F.lit(None).cast("int"),
            "elr": empty,
            "last_known_elr": empty,
            "how": F.lit(CLEAR),
        }
    )
    earlier = partition.rowsBetween(Window.unboundedPreceding, -1)

    def had(column: str) -> Column:
        some = F.when(F.col(column).isNotNull(), F.size(column) > 0)
        return F.coalesce(F.last(some, ignorenulls=True).over(earlier), F.lit(False))

    both = placed.unionByName(cleared).withColumn("has_elr", had("elr") | had("last_known_elr"))
    return both.where((F.col("how") != CLEAR) | F.col("has_elr")).drop("has_elr")


def _merged(placed: DataFrame, partition: WindowSpec) -> DataFrame:
    """Every record with all that it leaves out from the records before it."""
    so_far = partition.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_whole = F.col("how") == WHOLE
    carried = {name: F.last(name, ignorenulls=True).over(so_far).alias(name) for name in _CARRIED}
    plain = [name for name in placed.columns if name not in _CARRIED]
    led = F.col("leader").isNotNull() & ~is_whole
    return placed.select(
        *plain,
        *carried.values(),
        F.count_if(is_whole).over(so_far).alias("wholes"),
        F.count_if(~is_whole).over(so_far).cast("int").alias("changes"),
        F.count_if(led).over(so_far).cast("int").alias("elections"),
        (led | is_whole).alias("elected"),
        F.lead("at_offset").over(partition).alias("next_at"),
        F.lead("at_time").over(partition).alias("next_time"),
    ).where("wholes > 0")


def _compared(merged: DataFrame, partition: WindowSpec) -> DataFrame:
    """Epochs counted up from the last whole record, and what was before."""
    so_far = partition.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    directories = F.col("directories")
    is_known = F.get(directories, F.lit(0)) != str(MIGRATING)
    some_known = F.size(F.array_remove(directories, str(MIGRATING))) > 0
    unknown = F.array_repeat(F.lit(str(MIGRATING)), F.size("replicas"))
    # Whether they fit is not known before they are merged: where not, no controller wrote it.
    fitting = F.size(directories) == F.size("replicas")
    filled = F.when(fitting & (is_known | some_known), directories).otherwise(unknown)

    def counted(epoch: str, count: str) -> Column:
        base = F.when(F.col("how") == WHOLE, F.col(epoch) - F.col(count))
        return F.last(base, ignorenulls=True).over(so_far) + F.col(count)

    def before(column: str) -> Column:
        return F.lag(column).over(partition)

    steps = merged.withColumn("directories", filled).withColumns(
        {
            "leader_epoch": counted("leader_epoch", "elections"),
            "partition_epoch": counted("partition_epoch", "changes"),
            "before_leader": before("leader"),
            "before_recovery": before("leader_recovery_state"),
            **{f"before_{name}": before(name) for name in LISTS},
        }
    )
    had_before = F.col("before_leader").isNotNull()
    others = [name for name in LISTS if name != "isr"]
    differs = F.lit(False)
    for name in others:
        differs = differs | (F.col(name) != F.col(f"before_{name}"))
    was = F.struct(*(F.col(f"before_{name}").alias(name) for name in others))
    now_bad = troubles({name: F.col(name) for name in (*LISTS, *_STATE)}, F.col("min_isr"))
    was_bad = troubles(
        {
            **{name: F.col(f"before_{name}") for name in LISTS},
            "leader": F.col("before_leader"),
            "leader_recovery_state": F.col("before_recovery"),
        },
        F.col("min_isr_before"),
    )
    told = steps.withColumns(
        {
            "had_before": had_before,
            "before": F.when(had_before & differs, was),
            "troubles": now_bad,
            "troubles_before": F.when(had_before, was_bad).otherwise(F.lit(0)),
        }
    ).withColumn("before_isr", F.when(F.col("isr") != F.col("before_isr"), F.col("before_isr")))
    gone = ["wholes", "changes", "elections", "min_isr_before"]
    return told.drop(*gone, *(f"before_{name}" for name in others))


_STATE: Final = ("leader", "leader_recovery_state")
