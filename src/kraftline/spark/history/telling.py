"""What happened to partitions, in the words of `metadata.words`.

The same few things happen to many partitions: each is said once, with a mark where the name of the
partition belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.metadata.partition import RECOVERED, RECOVERING, PartitionRegistration
from kraftline.metadata.words import Change, partition_changes
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.around import Causes
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.placed import CLEAR, NONE, WHOLE, Flags
from kraftline.spark.history.rows import text_of
from kraftline.spark.history.steps import LISTS, Steps

_TOPIC: Final = "\0"
_NAME: Final = f"{_TOPIC}-0"


class Told(Struct):
    """A change per row: `step` is its step, the rest columns of the table `changes`; the text is
    `head`, the name of the partition, `tail`."""

    step: Ints
    columns: dict[str, pa.Array]
    head: pa.Array
    tail: pa.Array


def told(steps: Steps) -> Told:
    """What happened to the partitions of a chunk; bookkeeping is left out."""
    chosen = np.flatnonzero(_worth_telling(steps))
    before, at = steps.before[chosen], steps.at
    new_epoch = steps.leader_epoch[chosen] != steps.leader_epoch[before]
    causes, version, unit = _known(steps, chosen)
    codes = interned(
        steps.state[before],
        steps.state[chosen],
        new_epoch.astype(np.int64),
        version,
        unit,
        at.leg[chosen],
    )
    firsts = firsts_of(codes)
    said: list[Change] = []
    counts, begins = [], []
    states = _States(steps)
    for first in firsts.tolist():
        step = int(chosen[first])
        why = partial(causes[int(at.leg[step])].why, int(version[first]), int(unit[first]))
        changes = partition_changes(
            _TOPIC,
            0,
            states.of(int(before[first]), 0),
            states.of(step, int(new_epoch[first])),
            why,
        )
        begins.append(len(said))
        said += [change for change in changes if not change.minor]
        counts.append(len(said) - begins[-1])
    many = np.array(counts, np.int64)[codes] if len(codes) else codes
    step = np.repeat(chosen, many)
    # The first of a row's changes, then the next, …
    nth = np.arange(len(step)) - np.repeat(np.cumsum(many) - many, many)
    change = np.repeat(np.array(begins, np.int64)[codes], many) + nth if len(codes) else nth
    return _told(step, said, pa.array(change))


def _told(step: Ints, said: list[Change], change: pa.Array) -> Told:
    def column(of: Callable[[Change], object], kind: pa.DataType) -> pa.Array:
        return pa.array([of(each) for each in said], kind).take(change)

    parts = [each.text.partition(_NAME) for each in said]
    return Told(
        step,
        {
            "kind": column(lambda each: each.kind, pa.string()),
            "broker": column(lambda each: each.brokers[0] if each.brokers else None, pa.int32()),
            "before": column(lambda each: text_of(each.before), pa.string()),
            "after": column(lambda each: text_of(each.after), pa.string()),
            "cause": column(lambda each: each.because, pa.string()),
        },
        pa.array([head for head, _, _ in parts], pa.string()).take(change),
        pa.array([tail for _, _, tail in parts], pa.string()).take(change),
    )


def in_full(told: Told, names: pa.Array) -> pa.Array:
    """The texts with the names of their partitions."""
    return pc.binary_join_element_wise(told.head, names, told.tail, "")


def _worth_telling(steps: Steps) -> Flags:
    """Of a partition that was there, and not in its creation."""
    at = steps.at
    created = (at.how == WHOLE) & (at.unit == at.lives.began_unit[at.life])
    is_record = (at.unit != NONE) & (at.how != CLEAR)
    before = steps.before
    changed = (steps.state != steps.state[before]) | (
        (steps.recovery == RECOVERING) & (steps.leader_epoch != steps.leader_epoch[before])
    )
    found: Flags = steps.had_before & is_record & ~created & changed
    return found


def _known(steps: Steps, chosen: Ints) -> tuple[list[Causes], Ints, Ints]:
    """By leg what is known of brokers; for each step how much of it, and its unit where that says
    something of brokers."""
    at = steps.at
    causes = [Causes(leg) for leg in at.legs]
    version, unit = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
    for number, known in enumerate(causes):
        here = np.flatnonzero(at.leg[chosen] == number)
        rows = chosen[here]
        version[here] = np.searchsorted(known.offsets, at.offset[rows], "left")
        units = interned(at.unit[rows])
        says = [known.says(int(at.unit[rows[first]])) for first in firsts_of(units).tolist()]
        if any(says):
            unit[here] = np.where(np.array(says)[units], at.unit[rows], 0)
    return causes, version, unit


class _States:
    """Steps as registrations, for words."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._ids = [Uuid.parse(each) for each in steps.ids]
        self._made: dict[tuple[int, int], PartitionRegistration] = {}

    def of(self, step: int, epoch: int) -> PartitionRegistration:
        steps = self._steps
        key = int(steps.state[step]), epoch
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = registration(steps, step, self._ids, leader_epoch=epoch)
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
        state,
        removing,
        adding,
        elr,
        last,
    )
