"""Brokers: a registration is whole, and what happens to it later is merged into it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftline.lake.tables import BROKERS
from kraftline.spark.history.controllers import by_name
from kraftline.spark.history.staged import MOMENT, Staged, fields, united
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
        *MOMENT, "broker", "how", *said, *STATE, "there", "before", F.lit(False).alias("silent")
    )


def _records(staged: Staged) -> DataFrame:
    whole, change = fields("REGISTER_BROKER_RECORD"), fields("BROKER_REGISTRATION_CHANGE_RECORD")
    gone = fields("UNREGISTER_BROKER_RECORD")
    unnamed = F.exists(whole["end_points"], lambda point: point["name"] == "")
    known = change["fenced"].between(-1, 1) & change["in_controlled_shutdown"].between(0, 1)
    none = F.array().cast("array<string>")
    said = {
        "REGISTER_BROKER_RECORD": {
            "how": F.when(~unnamed, F.lit("registered")),
            "broker": whole["broker_id"],
            "broker_epoch": whole["broker_epoch"],
            "incarnation_id": whole["incarnation_id"],
            "rack": whole["rack"],
            "fenced": whole["fenced"],
            "in_controlled_shutdown": whole["in_controlled_shutdown"],
            "is_migrating_zk_broker": whole["is_migrating_zk_broker"],
            "endpoints": by_name(whole["end_points"]),
            "features": by_name(whole["features"]),
            "directories": in_order(F.coalesce(whole["log_dirs"], none)),
            "cordoned_directories": whole["cordoned_log_dirs"],
        },
        "BROKER_REGISTRATION_CHANGE_RECORD": {
            "how": F.when(known, F.lit("changed")),
            "broker": change["broker_id"],
            "broker_epoch": change["broker_epoch"],
            "fenced": F.when(change["fenced"] != 0, change["fenced"] == 1),
            "in_controlled_shutdown": F.when(change["in_controlled_shutdown"] == 1, F.lit(True)),
            "directories": F.when(F.size(change["log_dirs"]) > 0, in_order(change["log_dirs"])),
            "cordoned_directories": change["cordoned_log_dirs"],
        },
        "UNREGISTER_BROKER_RECORD": {
            "how": F.lit("unregistered"),
            "broker": gone["broker_id"],
            "broker_epoch": gone["broker_epoch"],
        },
    }
    for record_type, fenced in (("FENCE_BROKER_RECORD", True), ("UNFENCE_BROKER_RECORD", False)):
        old = fields(record_type)
        said[record_type] = {
            "how": F.lit("fenced"),
            "broker": old["id"],
            "broker_epoch": old["epoch"],
            "fenced": F.lit(fenced),
        }
    opened = {name: F.col(name) for name in ("broker", *STATE)}
    return united(
        staged.events(said).where(F.col("how").isNotNull()),
        staged.opened("brokers", {"how": F.lit("opened"), **opened}),
    )
