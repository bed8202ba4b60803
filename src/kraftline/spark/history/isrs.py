"""ISRs that shrank, grew or changed, in words. There can be millions, each with other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from kraftline.metadata.partition import MIGRATING, PartitionRegistration
from kraftline.metadata.words import Change, partition_changes
from kraftline.spark.history.lists import (
    PAD,
    Ints,
    Ints2,
    Lists,
    firsts_of,
    interned,
    rows_as_lists,
)
from kraftline.spark.history.marks import CAUSE, TOPIC, Filling, Mark, Told, mark
from kraftline.spark.history.placed import NONE, Flags
from kraftline.spark.history.steps import Steps
from kraftline.spark.history.whys import NO_CAUSE, Whys

_GONE, _NEW, _NOW = mark(1, "\2"), mark(2, "\3"), mark(3, "\4")
_NO_BROKER: Final = 4  # none of them


def isrs(steps: Steps, chosen: Ints, whys: Whys) -> Iterator[Told]:
    """What happened to the ISRs of some steps."""
    codes = steps.lists["isr"]
    chosen = chosen[codes[steps.before[chosen]] != codes[chosen]]
    if not len(chosen):
        return
    before = steps.before[chosen]
    was, now = codes[before], codes[chosen]
    gone, new = _differences(steps.values, was, now)
    sizes, firsts, lists = steps.values.sizes(), steps.values.firsts(NONE), steps.values.matrix()
    some_gone, some_new = sizes[gone] > 0, sizes[new] > 0
    # A leader is in sync by definition: that it was elected has been said.
    leader = steps.leader[chosen]
    elected = (sizes[new] == 1) & (firsts[new] == leader) & (leader != steps.leader[before])
    is_whole = _are_within(lists, steps.lists["replicas"][chosen], now)
    cause = np.full(len(chosen), NO_CAUSE)
    shrank = np.flatnonzero(some_gone & ~some_new)
    cause[shrank] = _causes(steps, chosen[shrank], gone[shrank], whys)
    flags = (some_gone, some_new, is_whole, cause != NO_CAUSE)
    groups = interned(*(each.astype(np.int64) for each in flags))
    told = (some_gone | some_new) & ~(elected & ~some_gone)
    texts = steps.values.texts()
    named = pc.if_else(pc.equal(texts, ""), "none", texts)
    for number, first in enumerate(firsts_of(groups).tolist()):
        rows = np.flatnonzero((groups == number) & told)
        if not len(rows):
            continue
        columns = ((_GONE, gone), (_NEW, new), (_NOW, now))
        filling = Filling(
            {
                **{each.mark: named.take(pa.array(code[rows])) for each, code in columns},
                CAUSE: whys.arrow(cause[rows]),
            },
            {_GONE.mark: firsts[gone[rows]], _NEW.mark: firsts[new[rows]]},
        )
        found = filling.told(chosen[rows], _change(*(bool(each[first]) for each in flags)))
        found.before, found.after = (
            pc.binary_join_element_wise("[", texts.take(pa.array(code[rows])), "]", "")
            for code in (was, now)
        )
        yield found


@cache
def _change(some_gone: bool, some_new: bool, whole: bool, caused: bool) -> Change:
    """A change with marks."""
    change = _said(some_gone, some_new, whole=False, caused=caused)
    head, _, clause = change.text.rpartition("; ")
    if whole:
        # As it is said of an ISR that nobody left.
        clause = _said(False, True, whole=True, caused=False).text.rpartition("; ")[2]
    # The ISR itself is what the sentence ends with.
    clause = clause.replace(_NEW.mark, _NOW.mark)
    return replace(change, text=f"{head}; {clause}", before=None, after=None)


def _said(some_gone: bool, some_new: bool, *, whole: bool, caused: bool) -> Change:
    now: tuple[Mark, ...] = (_NEW,) if some_new else (_NOW,)
    was = ((_GONE,) if some_gone else ()) + (() if some_new else now)
    replicas = now if whole else (*now, *was, _NO_BROKER)
    before, after = (
        PartitionRegistration(replicas, (MIGRATING,) * len(replicas), isr, 0, 0, 0)
        for isr in (was, now)
    )
    (change,) = partition_changes(
        TOPIC, 0, before, after, lambda broker, back, where: CAUSE if caused else None
    )
    return change


def _differences(lists: Lists, was: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Who left and who came, as lists."""
    pairs = interned(was, now)
    firsts = firsts_of(pairs)
    matrix = lists.matrix()
    one, other = matrix[was[firsts]], matrix[now[firsts]]
    return _left(lists, one, other)[pairs], _left(lists, other, one)[pairs]


def _left(lists: Lists, one: Ints2, other: Ints2) -> Ints:
    """The codes of what is in one list and not in another."""
    is_left = ~(one[:, :, None] == other[:, None, :]).any(axis=2) & (one != PAD)
    return rows_as_lists(lists, one, is_left)


def _are_within(lists: Ints2, some: Ints, others: Ints) -> Flags:
    """Whether all of one list are in another."""
    pairs = interned(some, others)
    firsts = firsts_of(pairs)
    one, other = lists[some[firsts]], lists[others[firsts]]
    inside = (one[:, :, None] == other[:, None, :]).any(axis=2) | (one == PAD)
    found: Flags = inside.all(axis=1)[pairs]
    return found


def _causes(steps: Steps, step: Ints, gone: Ints, whys: Whys) -> Ints:
    """Why replicas left, of an ISR that nobody joined: the first cause that is known."""
    lists = steps.values.matrix()
    replicas = steps.lists["replicas"][step]
    cause = np.full(len(step), NO_CAUSE)
    is_left = ~_are_within(lists, gone, replicas)
    for at in np.flatnonzero(is_left).tolist():
        cause[at] = whys.number(_no_replicas(steps.values.values, gone[at], replicas[at]))
    for place in range(lists.shape[1]):
        asked = lists[gone, place]
        rows = np.flatnonzero((cause == NO_CAUSE) & ~is_left & (asked != PAD))
        if not len(rows):
            break
        cause[rows] = whys.out(step[rows], asked[rows])
    return cause


def _no_replicas(values: list[tuple[int, ...]], gone: int, replicas: int) -> str | None:
    """How it is said that those who left are no replicas any more."""
    left = tuple(each for each in values[gone] if each not in values[replicas])
    before = PartitionRegistration((), (), left, 0, 0, 0)
    (change,) = partition_changes(TOPIC, 0, before, PartitionRegistration((), (), (), 0, 0, 0))
    return change.because
