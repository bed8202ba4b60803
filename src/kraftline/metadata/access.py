"""What access control speaks of, by Kafka's names and numbers: resources, operations, patterns and
permissions."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"


class Resource(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Pattern(IntEnum):
    """MATCH is for filters alone: whatever counts for a resource of a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


# What there is to do with a resource, as answers about authorized operations have it.
OPERATIONS: Final = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    Resource.TRANSACTIONAL_ID: (
        Operation.DESCRIBE,
        Operation.WRITE,
        Operation.TWO_PHASE_COMMIT,
    ),
    Resource.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Resource.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}


def bits(operations: tuple[Operation, ...]) -> int:
    """A bit for each, as answers have them."""
    return sum(1 << each for each in operations)
