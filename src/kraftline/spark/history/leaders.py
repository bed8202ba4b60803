"""Elections and what came of them, in words: only who leads and who should counts for that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kraftline.metadata.partition import (
    MIGRATING,
    NO_LEADER,
    RECOVERING,
    PartitionRegistration,
    unusually,
)
from kraftline.metadata.words import Change, partition_changes
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.marks import CAUSE, TOPIC, Filling, Told, mark
from kraftline.spark.history.steps import Steps
from kraftline.spark.history.whys import NO_CAUSE, Whys

_WAS, _NOW = mark(1, "\2"), mark(2, "\3")
_NO_BROKER = 3  # neither of them


def leaders(steps: Steps, chosen: Ints, whys: Whys) -> Iterator[Told]:
    """What happened to the leaders of some steps."""
    before = steps.before[chosen]
    elected = steps.leader_epoch[chosen] != steps.leader_epoch[before]
    some = (
        (steps.leader[before] != steps.leader[chosen])
        | ((steps.recovery[chosen] == RECOVERING) & elected)
        | (steps.recovery[before] != steps.recovery[chosen])
    )
    chosen, before, elected = chosen[some], before[some], elected[some]
    was, now = steps.leader[before], steps.leader[chosen]
    firsts = steps.values.firsts(NO_LEADER)
    best, was_best = (firsts[steps.lists["replicas"][each]] for each in (chosen, before))
    replicas = steps.values.matrix()[steps.lists["replicas"][chosen]]
    # Only where there was no leader it matters why the new one is back.
    cause = np.where(was == NO_LEADER, whys.back(chosen, now), whys.out(chosen, was))
    columns = (
        was == NO_LEADER,
        now == NO_LEADER,
        was == now,
        steps.recovery[before],
        steps.recovery[chosen],
        elected,
        now == best,
        was == was_best,
        (replicas == was[:, None]).any(axis=1),
        cause != NO_CAUSE,
    )
    codes = interned(*(column.astype(np.int64) for column in columns))
    for code, first in enumerate(firsts_of(codes).tolist()):
        rows = np.flatnonzero(codes == code)
        filling = Filling(
            {
                _WAS.mark: pa.array(was[rows]).cast(pa.string()),
                _NOW.mark: pa.array(now[rows]).cast(pa.string()),
                CAUSE: whys.arrow(cause[rows]),
            },
            {_WAS.mark: was[rows], _NOW.mark: now[rows]},
        )
        for change in _said(*(int(column[first]) for column in columns)):
            yield filling.told(chosen[rows], change)


def _said(*flags: int) -> list[Change]:
    no_leader_before, no_leader, same, was_state, state, elected, is_best, was_best = flags[:8]
    is_replica, caused = flags[8:]
    was = NO_LEADER if no_leader_before else _WAS
    now = NO_LEADER if no_leader else was if same else _NOW
    others = (was,) if is_replica else ()
    best = (now if is_best else _NO_BROKER, *others)
    before = PartitionRegistration(
        (was if was_best else _NO_BROKER,), (MIGRATING,), (), was, 0, 0, unusually(was_state)
    )
    where = (MIGRATING,) * len(best)
    after = PartitionRegistration(best, where, (), now, elected, 0, unusually(state))
    changes = partition_changes(
        TOPIC, 0, before, after, lambda broker, back, where: CAUSE if caused else None
    )
    return [each for each in changes if each.kind.startswith("leader.") and not each.minor]
