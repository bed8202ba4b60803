"""What is rare in the life of a partition, in words: reassignments, ELR, directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from kraftline.metadata.partition import (
    LOST,
    MIGRATING,
    RECOVERED,
    RECOVERING,
    UNASSIGNED,
    PartitionRegistration,
    unusually,
)
from kraftline.metadata.words import Change, partition_changes
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.lists import PAD, Ints
from kraftline.spark.history.marks import NAME, TOPIC, Told
from kraftline.spark.history.placed import Flags
from kraftline.spark.history.rows import text_of
from kraftline.spark.history.steps import LISTS, Steps


def rare(steps: Steps, chosen: Ints) -> Iterator[Told]:
    """Steps that say more than who leads and who is in sync, and more than bookkeeping."""
    before, lists = steps.before[chosen], steps.lists

    def differs(name: str) -> Flags:
        found: Flags = lists[name][before] != lists[name][chosen]
        return found

    moved = differs("replicas") | differs("adding_replicas") | differs("removing_replicas")
    elr = differs("elr") & ~differs("isr")
    placed = differs("directories")
    placed[placed] = _are_moves(steps, before[placed], chosen[placed])
    some = moved | elr | placed
    chosen, before = chosen[some], before[some]
    ids = [Uuid.parse(each) for each in steps.ids]
    rows: list[int] = []
    said: list[Change] = []
    for was, now in zip(before.tolist(), chosen.tolist(), strict=True):
        one, other = (registration(steps, each, ids, leader_epoch=0) for each in (was, now))
        for change in partition_changes(TOPIC, 0, one, other):
            if change.kind.startswith(_OF_LISTS) and not change.minor:
                rows.append(now)
                said.append(change)
    if not said:
        return
    parts = [each.text.partition(NAME) for each in said]
    head, tail = (pa.array([part[at] for part in parts], pa.string()) for at in (0, 2))
    yield Told(
        np.array(rows),
        pa.array([each.kind for each in said], pa.string()),
        pa.array([each.brokers[0] if each.brokers else None for each in said], pa.int32()),
        pa.array([text_of(each.before) for each in said], pa.string()),
        pa.array([text_of(each.after) for each in said], pa.string()),
        pa.array([each.because for each in said], pa.string()),
        [head, None, tail],
    )


_OF_LISTS: Final = ("reassignment.", "replicas.", "elr.", "directory.")


def _are_moves(steps: Steps, before: Ints, chosen: Ints) -> Flags:
    """Whether a replica left a directory that was known, or lost it. Where replicas are others,
    that is told anyway."""
    matrix, where = steps.values.matrix(), steps.lists["directories"]
    was, now = matrix[where[before]], matrix[where[chosen]]
    number = {each: at for at, each in enumerate(steps.ids)}
    unknown = [PAD, *(number.get(str(each), PAD) for each in (UNASSIGNED, MIGRATING))]
    lost = number.get(str(LOST), PAD)
    moved = (was != now) & (~np.isin(was, unknown) | ((now == lost) & (now != PAD)))
    found: Flags = moved.any(axis=1)
    return found


def registration(
    steps: Steps, step: int, ids: list[Uuid], *, leader_epoch: int, partition_epoch: int = 0
) -> PartitionRegistration:
    """A partition as it is after a step."""
    values = steps.values.values
    replicas, isr, adding, removing, elr, last, where = (
        values[int(steps.lists[name][step])] for name in LISTS
    )
    state = RECOVERING if int(steps.recovery[step]) == RECOVERING else RECOVERED
    return PartitionRegistration(
        replicas,
        tuple(ids[each] for each in where),
        isr,
        int(steps.leader[step]),
        leader_epoch,
        partition_epoch,
        unusually(state, removing, adding, elr, last),
    )
