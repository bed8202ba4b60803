"""Which partition of a coordinator's topic has a group or a transactional id."""

from __future__ import annotations

from kraftline.controller.java_order import string_hash

_SMALLEST = 1 << 31  # the number whose absolute value Java does not have; Kafka takes 0


def partition_for(key: str, partitions: int) -> int:
    """The partition of a key, where its topic has so many."""
    hashed = string_hash(key)
    if hashed >= _SMALLEST:
        hashed = (1 << 32) - hashed if hashed > _SMALLEST else 0
    return hashed % partitions
