"""Access control entries by their id, with Kafka's names for what its records number."""

from __future__ import annotations

from pyspark.sql import functions as F

from kraftline.lake.names import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES
from kraftline.spark.history.codes import name_of
from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def acls() -> Said:
    acl = fields("ACCESS_CONTROL_ENTRY_RECORD")
    return {
        "ACCESS_CONTROL_ENTRY_RECORD": (
            F.lit(True),
            {
                "id": acl["id"],
                "resource_type": name_of(acl["resource_type"], RESOURCE_TYPES),
                "resource": acl["resource_name"],
                "pattern_type": name_of(acl["pattern_type"], PATTERN_TYPES),
                "principal": acl["principal"],
                "host": acl["host"],
                "operation": name_of(acl["operation"], OPERATIONS),
                "permission": name_of(acl["permission_type"], PERMISSIONS),
            },
        ),
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": (
            F.lit(False),
            {"id": fields("REMOVE_ACCESS_CONTROL_ENTRY_RECORD")["id"]},
        ),
    }
