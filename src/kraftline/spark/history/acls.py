"""Access control entries by their id, with Kafka's names for what its records number."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.lake.tables import ACLS
from kraftline.spark.history.codes import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    name_of,
)
from kraftline.spark.history.staged import Staged, united


def acl_events(staged: Staged) -> DataFrame:
    """Events with the columns of the table, and `there`."""
    r = F.col("r")
    there = staged.of(
        "ACCESS_CONTROL_ENTRY_RECORD",
        id=r["id"],
        resource_type=name_of(r["resource_type"], RESOURCE_TYPES),
        resource=r["resource_name"],
        pattern_type=name_of(r["pattern_type"], PATTERN_TYPES),
        principal=r["principal"],
        host=r["host"],
        operation=name_of(r["operation"], OPERATIONS),
        permission=name_of(r["permission_type"], PERMISSIONS),
        there=F.lit(True),
    )
    names = ACLS.columns.names
    columns = names[1 : names.index("valid_from_offset")]
    nothing = {name: F.lit(None).cast("string") for name in columns}
    gone = staged.of(
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", **{**nothing, "id": r["id"], "there": F.lit(False)}
    )
    opened = {name: F.col(name) for name in columns}
    return united(there, gone, staged.opened("acls", **opened, there=F.lit(True)))
