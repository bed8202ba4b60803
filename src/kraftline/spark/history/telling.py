"""What happened to partitions, in the words of `metadata.words`.

The same things happen to many partitions: each is said once, by the same words as everywhere, with
marks where names and numbers belong, and the marks are filled in for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kraftline.metadata.partition import (
    LOST,
    MIGRATING,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    UNASSIGNED,
    PartitionRegistration,
)
from kraftline.metadata.words import Change, partition_changes
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.isrs import NAME, TOPIC, Told, isrs
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.placed import CLEAR, NONE, WHOLE, Flags
from kraftline.spark.history.rows import text_of
from kraftline.spark.history.steps import LISTS, Steps
from kraftline.spark.history.whys import NO_CAUSE, Whys

_NO_BROKER: Final = -7  # none has this number


def told(steps: Steps) -> list[Told]:
    """What happened to the partitions of a chunk; bookkeeping is left out."""
    chosen = np.flatnonzero(_worth_telling(steps))
    whys = Whys(steps)
    return [*_leaders(steps, chosen, whys), *isrs(steps, chosen, whys), *_rare(steps, chosen)]


def _worth_telling(steps: Steps) -> Flags:
    """Of a partition that was there, and not in its creation."""
    at = steps.at
    created = (at.how == WHOLE) & (at.unit == at.lives.began_unit[at.life])
    is_record = (at.unit != NONE) & (at.how != CLEAR)
    found: Flags = steps.had_before & is_record & ~created
    return found


def _leaders(steps: Steps, chosen: Ints, whys: Whys) -> Iterator[Told]:
    """Elections, and what came of them. Of a partition counts only who leads and who should."""
    before = steps.before[chosen]
    was, now = steps.leader[before], steps.leader[chosen]
    was_state, state = steps.recovery[before], steps.recovery[chosen]
    elected = steps.leader_epoch[chosen] != steps.leader_epoch[before]
    some = (was != now) | ((state == RECOVERING) & elected) | (was_state != state)
    chosen, before = chosen[some], before[some]
    was, now, was_state, state, elected = (
        each[some] for each in (was, now, was_state, state, elected)
    )
    firsts = steps.values.firsts(NO_LEADER)
    preferred, was_preferred = (firsts[steps.lists["replicas"][each]] for each in (chosen, before))
    replicas = steps.values.matrix()[steps.lists["replicas"][chosen]]
    columns = (
        was,
        now,
        was_state,
        state,
        elected.astype(np.int64),
        (now == preferred).astype(np.int64),
        (was == was_preferred).astype(np.int64),
        (replicas == was[:, None]).any(axis=1).astype(np.int64),
        whys.out(chosen, was),
        whys.back(chosen, now),
    )

    def say(*key: int) -> list[Change]:
        was, now, was_state, state, elected, is_best, was_best, is_replica, out, back = key
        others = (was,) if is_replica else ()
        one = PartitionRegistration(
            (was if was_best else _NO_BROKER,), (MIGRATING,), (), was, 0, 0, was_state
        )
        best = now if is_best else _NO_BROKER
        other = PartitionRegistration(
            (best, *others), (MIGRATING,) * (1 + len(others)), (), now, elected, 0, state
        )

        def why(broker: int, is_back: bool, directory: Uuid | None) -> str | None:
            cause = back if is_back else out
            return None if cause == NO_CAUSE else whys.texts[cause]

        changes = partition_changes(TOPIC, 0, one, other, why)
        return [c for c in changes if c.kind.startswith("leader.")]

    yield from _said(chosen, columns, say)


def _said(
    step: Ints, columns: Sequence[Ints], say: Callable[..., Sequence[Change]]
) -> Iterator[Told]:
    """What `say` makes of some numbers, for all rows that have them. Bookkeeping is left out."""
    if not len(step):
        return
    codes = interned(*columns)
    firsts = firsts_of(codes)
    said: list[Change] = []
    begins, counts = [], []
    for key in zip(*(column[firsts].tolist() for column in columns), strict=True):
        begins.append(len(said))
        said += [change for change in say(*key) if not change.minor]
        counts.append(len(said) - begins[-1])
    many = np.array(counts)[codes]
    # The first of a row's changes, then the next, …
    nth = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    change = pa.array(np.repeat(np.array(begins)[codes], many) + nth)

    def column(of: Callable[[Change], object], kind: pa.DataType) -> pa.Array:
        return pa.array([of(each) for each in said], kind).take(change)

    parts = [each.text.partition(NAME) for each in said]
    heads, tails = (pa.array([part[at] for part in parts], pa.string()) for at in (0, 2))
    yield Told(
        np.repeat(step, many),
        column(lambda each: each.kind, pa.string()),
        column(lambda each: each.brokers[0] if each.brokers else None, pa.int32()),
        column(lambda each: text_of(each.before), pa.string()),
        column(lambda each: text_of(each.after), pa.string()),
        column(lambda each: each.because, pa.string()),
        [heads.take(change), None, tails.take(change)],
    )


def _rare(steps: Steps, chosen: Ints) -> Iterator[Told]:
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

    def say(was: int, now: int, *key: int) -> list[Change]:
        changes = partition_changes(
            TOPIC,
            0,
            registration(steps, was, ids, leader_epoch=0),
            registration(steps, now, ids, leader_epoch=0),
        )
        return [change for change in changes if change.kind.startswith(_OF_LISTS)]

    yield from _said(chosen, (before, chosen), say)


_OF_LISTS: Final = ("reassignment.", "replicas.", "elr.", "directory.")


def _are_moves(steps: Steps, before: Ints, chosen: Ints) -> Flags:
    """Whether a replica left a directory that was known, or lost it."""
    was, now = (steps.lists["directories"][each] for each in (before, chosen))
    pairs = interned(was, now)
    ids, values = steps.ids, steps.values.values
    unknown = {str(UNASSIGNED), str(MIGRATING)}
    found = []
    for at in firsts_of(pairs).tolist():
        one, other = ({ids[each] for each in values[code[at]]} for code in (was, now))
        found.append(bool(one - unknown - other) or str(LOST) in other)
    return np.array(found, bool)[pairs]


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
