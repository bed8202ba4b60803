"""Controllers, as they registered themselves."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.spark.history.brokers import by_name
from kraftline.spark.history.staged import Staged, united


def controller_events(staged: Staged) -> DataFrame:
    """Events with the columns of the table, and `there`."""
    r = F.col("r")
    unknown = F.exists(r["end_points"], lambda point: ~point["security_protocol"].between(0, 3))
    there = staged.of(
        "REGISTER_CONTROLLER_RECORD",
        controller=F.when(~unknown, r["controller_id"]),
        incarnation_id=r["incarnation_id"],
        zk_migration_ready=r["zk_migration_ready"],
        endpoints=by_name(r["end_points"]),
        features=by_name(r["features"]),
        there=F.lit(True),
    ).where(F.col("controller").isNotNull())
    columns = ("controller", "incarnation_id", "zk_migration_ready", "endpoints", "features")
    nothing = {name: F.lit(None).cast(there.schema[name].dataType) for name in columns}
    gone = staged.of(
        "UNREGISTER_CONTROLLER_RECORD",
        **{**nothing, "controller": r["controller_id"], "there": F.lit(False)},
    )
    opened = {name: F.col(name) for name in columns}
    return united(there, gone, staged.opened("controllers", **opened, there=F.lit(True)))
