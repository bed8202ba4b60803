"""Kafka's numbers as the names that a lake's tables have; an unknown number is its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONFIG_RESOURCES: Final = {
    2: "topic",
    4: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}
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


def number_of(name: str, names: Mapping[int, str]) -> int:
    """The number that a name was made of."""
    for number, known in names.items():
        if name == known:
            return number
    return int(name)
