"""Kafka's numbers as names, and back; a number that is not known is its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F


def name_of(code: Column, names: Mapping[int, str]) -> Column:
    found = F.when(code.isNull(), None)
    for number, name in names.items():
        found = found.when(code == number, F.lit(name))
    return found.otherwise(code.cast("string"))


def number_of(name: str, names: Mapping[int, str]) -> int:
    """The number that a name was made of."""
    for number, known in names.items():
        if name == known:
            return number
    return int(name)


# The enums of org.apache.kafka.common.resource and .acl.
RESOURCE_TYPES: Final = {
    0: "UNKNOWN",
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERN_TYPES: Final = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
OPERATIONS: Final = {
    0: "UNKNOWN",
    1: "ANY",
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
PERMISSIONS: Final = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}
