"""What a client may do, as answers say it: a bit for each operation."""

from __future__ import annotations

from typing import Final

# Kafka's numbers of operations.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = range(3, 10)
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE, _CREATE_TOKENS, _DESCRIBE_TOKENS = range(
    10, 15
)


def _bits(*operations: int) -> int:
    return sum(1 << each for each in operations)


# Without an authorizer everybody may do all that there is to do.
ALL_OF_TOPIC: Final = _bits(
    _READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
ALL_OF_CLUSTER: Final = _bits(
    _CREATE,
    _ALTER,
    _DESCRIBE,
    _CLUSTER_ACTION,
    _DESCRIBE_CONFIGS,
    _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
)
NOT_ASKED: Final = -(1 << 31)
