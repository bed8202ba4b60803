"""Brokers: a registration is whole, and what happens to it later is merged into it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import BROKERS
from kraftline.spark.history.staged import MOMENT, Staged, united
from kraftline.spark.history.uuids import in_order
from kraftline.spark.history.validity import ORDER

STATE: Final = tuple(
    name
    for name in BROKERS.columns.names[1 : BROKERS.columns.names.index("valid_from_offset")]
    if name != "broker"
)


def broker_events(staged: Staged) -> DataFrame:
    """Every record of a broker that was taken: MOMENT, broker, `how`, what the record itself said
    (said_fenced, said_shutdown, said_directories; null is nothing), how the broker is after it
    (STATE, `there`) and how it was before (`before`, a struct of STATE; null if it was not
    there)."""
    broker = Window.partitionBy("cluster_id", "leg", "broker").orderBy(*ORDER)
    begins = F.count_if(F.col("how").isin("registered", "unregistered", "opened"))
    so_far = broker.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = _records(staged).withColumn("life", begins.over(so_far))
    life = Window.partitionBy("cluster_id", "leg", "broker", "life").orderBy(*ORDER)
    whole = life.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    # A record that is not of this registration is passed over.
    placed = numbered.withColumns(
        {
            "begun": F.first("how").over(whole),
            "registered_epoch": F.first("broker_epoch").over(whole),
        }
    ).where(
        F.col("how").isin("registered", "unregistered", "opened")
        | (
            F.col("begun").isin("registered", "opened")
            & (F.col("broker_epoch") == F.col("registered_epoch"))
        )
    )
    merged = life.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    there = F.col("how") != "unregistered"
    carried = {name: F.last(name, ignorenulls=True).over(merged) for name in STATE}
    said = {
        "said_fenced": F.col("fenced"),
        "said_shutdown": F.col("in_controlled_shutdown"),
        "said_directories": F.col("directories"),
    }
    state = placed.withColumns(said).withColumns({**carried, "there": there})
    standing = F.when(F.col("there"), F.struct(*STATE))
    return state.withColumn("before", F.lag(standing).over(broker)).select(
        *MOMENT, "broker", "how", *said, *STATE, "there", "before"
    )


def _records(staged: Staged) -> DataFrame:
    r = F.col("r")
    unnamed = F.exists(r["end_points"], lambda point: point["name"] == "")
    registered = staged.of(
        "REGISTER_BROKER_RECORD",
        how=F.when(unnamed, None).otherwise(F.lit("registered")),
        broker=r["broker_id"],
        broker_epoch=r["broker_epoch"],
        incarnation_id=r["incarnation_id"],
        rack=r["rack"],
        fenced=r["fenced"],
        in_controlled_shutdown=r["in_controlled_shutdown"],
        is_migrating_zk_broker=r["is_migrating_zk_broker"],
        endpoints=by_name(r["end_points"]),
        features=by_name(r["features"]),
        directories=in_order(F.coalesce(r["log_dirs"], F.array().cast("array<string>"))),
        cordoned_directories=r["cordoned_log_dirs"],
    ).where(F.col("how").isNotNull())
    nothing = {name: F.lit(None).cast(registered.schema[name].dataType) for name in STATE}
    no_dirs = F.size(r["log_dirs"]) == 0
    changed = staged.of(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        **{
            **nothing,
            "how": F.when(
                r["fenced"].between(-1, 1) & r["in_controlled_shutdown"].between(0, 1),
                F.lit("changed"),
            ),
            "broker": r["broker_id"],
            "broker_epoch": r["broker_epoch"],
            "fenced": F.when(r["fenced"] != 0, r["fenced"] == 1),
            "in_controlled_shutdown": F.when(r["in_controlled_shutdown"] == 1, F.lit(True)),
            "directories": F.when(~no_dirs, in_order(r["log_dirs"])),
            "cordoned_directories": r["cordoned_log_dirs"],
        },
    ).where(F.col("how").isNotNull())
    gone = staged.of(
        "UNREGISTER_BROKER_RECORD",
        **{
            **nothing,
            "how": F.lit("unregistered"),
            "broker": r["broker_id"],
            "broker_epoch": r["broker_epoch"],
        },
    )
    opened = staged.opened(
        "brokers", how=F.lit("opened"), **{name: F.col(name) for name in ("broker", *STATE)}
    )
    old = [
        staged.of(
            record_type,
            **{
                **nothing,
                "how": F.lit("fenced"),
                "broker": r["id"],
                "broker_epoch": r["epoch"],
                "fenced": F.lit(fenced),
            },
        )
        for record_type, fenced in (("FENCE_BROKER_RECORD", True), ("UNFENCE_BROKER_RECORD", False))
    ]
    return united(registered, changed, gone, opened, *old)


def by_name(things: Column) -> Column:
    """In the order of their names; a name that comes twice counts as it comes last."""
    last = F.filter(
        things,
        lambda each, at: (
            ~F.exists(
                F.slice(things, at + 2, F.size(things)), lambda other: other["name"] == each["name"]
            )
        ),
    )
    return F.array_sort(last)
