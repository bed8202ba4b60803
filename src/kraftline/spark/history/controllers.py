"""Controllers, as they registered themselves."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def controllers() -> Said:
    controller = fields("REGISTER_CONTROLLER_RECORD")
    columns = {
        "controller": controller["controller_id"],
        "incarnation_id": controller["incarnation_id"],
        "zk_migration_ready": controller["zk_migration_ready"],
        "endpoints": by_name(controller["end_points"]),
        "features": by_name(controller["features"]),
    }
    gone = {"controller": fields("UNREGISTER_CONTROLLER_RECORD")["controller_id"]}
    unknown = F.exists(
        controller["end_points"], lambda point: ~point["security_protocol"].between(0, 3)
    )
    return {
        # Null: no node would take it, and all stays as it was.
        "REGISTER_CONTROLLER_RECORD": (F.when(~unknown, F.lit(True)), columns),
        "UNREGISTER_CONTROLLER_RECORD": (F.lit(False), gone),
    }


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
