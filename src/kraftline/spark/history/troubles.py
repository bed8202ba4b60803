"""What is wrong with a partition, as bits: the rules of `inspect.cluster.health`, for many rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from kraftline.inspect.cluster.health import (
    AT_MIN_ISR,
    NOT_PREFERRED,
    OFFLINE,
    REASSIGNING,
    RECOVERING_STATE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
)
from kraftline.metadata.partition import NO_LEADER, RECOVERING
from kraftline.spark.history.lists import Ints

BROKER_DOWN: Final = "broker down"
# A bit each. Whether a directory is offline is a matter of brokers, and no kind of its own.
BITS: Final = {
    OFFLINE: 1,
    UNDER_REPLICATED: 2,
    RECOVERING_STATE: 4,
    REASSIGNING: 8,
    NOT_PREFERRED: 16,
    UNDER_MIN_ISR: 32,
    AT_MIN_ISR: 64,
}
MIN_ISR_BITS: Final = BITS[UNDER_MIN_ISR] | BITS[AT_MIN_ISR]


def troubles(
    *,
    leader: Ints,
    recovery: Ints,
    preferred: Ints,
    in_sync: Ints,
    replicas: Ints,
    adding: Ints,
    removing: Ints,
    min_isr: Ints,
) -> Ints:
    """The bits of all that is wrong. Lists are given by their sizes."""
    wanted = replicas - adding
    found = {
        OFFLINE: leader == NO_LEADER,
        UNDER_REPLICATED: in_sync < wanted,
        RECOVERING_STATE: recovery == RECOVERING,
        REASSIGNING: (adding > 0) | (removing > 0),
        NOT_PREFERRED: (leader != NO_LEADER) & (leader != preferred),
    }
    bits = min_isr_troubles(in_sync, wanted, min_isr)
    for kind, is_so in found.items():
        bits = bits | np.where(is_so, BITS[kind], 0)
    return bits


def min_isr_troubles(in_sync: Ints, wanted: Ints, min_isr: Ints) -> Ints:
    """The bits that depend on min.insync.replicas, which may change by itself."""
    least = np.minimum(min_isr, np.maximum(wanted, 1))
    under = np.where(in_sync < least, BITS[UNDER_MIN_ISR], 0)
    at_least = np.where((in_sync == least) & (least < wanted), BITS[AT_MIN_ISR], 0)
    found: Ints = np.bitwise_or(under, at_least)
    return found
