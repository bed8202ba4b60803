"""What is wrong with a partition, as bits: the rules of `inspect.cluster.health`, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

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


def troubles(state: Mapping[str, Column], min_isr: Column) -> Column:
    """The bits of all that is wrong with a partition whose columns are given."""
    in_sync = F.size(state["isr"])
    wanted = wanted_replicas(state["replicas"], state["adding_replicas"])
    leader, replicas = state["leader"], state["replicas"]
    moving = (F.size(state["adding_replicas"]) > 0) | (F.size(state["removing_replicas"]) > 0)
    preferred = F.coalesce(F.get(replicas, F.lit(0)), F.lit(NO_LEADER))
    found = {
        OFFLINE: leader == NO_LEADER,
        UNDER_REPLICATED: in_sync < wanted,
        RECOVERING_STATE: state["leader_recovery_state"] == RECOVERING,
        REASSIGNING: moving,
        NOT_PREFERRED: (leader != NO_LEADER) & (leader != preferred),
    }
    return _bits(found).bitwiseOR(min_isr_troubles(in_sync, wanted, min_isr))


def min_isr_troubles(in_sync: Column, wanted: Column, min_isr: Column) -> Column:
    """The bits that depend on min.insync.replicas, which may change by itself."""
    least = F.least(min_isr, F.greatest(wanted, F.lit(1)))
    return _bits(
        {
            UNDER_MIN_ISR: in_sync < least,
            AT_MIN_ISR: (in_sync == least) & (least < wanted),
        }
    )


def wanted_replicas(replicas: Column, adding: Column) -> Column:
    """How many replicas a partition should have when nothing is being added."""
    return F.size(replicas) - F.size(adding)


def _bits(found: Mapping[str, Column]) -> Column:
    total = F.lit(0)
    for kind, is_so in found.items():
        total = total + F.when(is_so, F.lit(BITS[kind])).otherwise(F.lit(0))
    return total
