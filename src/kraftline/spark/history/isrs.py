"""ISRs that shrank, grew or changed, in the words of `metadata.words`.

There can be millions of these, each with other numbers: the words are taken once, with marks where
the numbers belong, and the marks filled in for all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.metadata.partition import MIGRATING, PartitionRegistration
from kraftline.metadata.words import Change, partition_changes
from kraftline.spark.history.lists import PAD, Ints, Lists, firsts_of, interned
from kraftline.spark.history.placed import NONE, Flags
from kraftline.spark.history.steps import Steps
from kraftline.spark.history.whys import NO_CAUSE, Whys

TOPIC: Final = "\0"
NAME: Final = f"{TOPIC}-0"
_CAUSE: Final = "\4"
_NO_BROKER: Final = -7  # none has this number


class Told(Struct):
    """A change per row: `step` is its step, the rest columns of the table `changes`; `text` has
    pieces, None where the name of the partition belongs."""

    step: Ints
    kind: pa.Array
    broker: pa.Array
    before: pa.Array
    after: pa.Array
    cause: pa.Array
    text: list[pa.Array | None]


class _Mark(int):
    """A number that stands for what is to be filled in."""

    mark: str

    def __str__(self) -> str:
        return self.mark


def _mark(number: int, text: str) -> _Mark:
    made = _Mark(number)
    made.mark = text
    return made


_GONE, _NEW, _NOW = _mark(1, "\1"), _mark(2, "\2"), _mark(3, "\3")


class _Template(Struct, frozen=True):
    """A sentence in pieces; those at odd places are marks, the last of which is the whole ISR."""

    kind: str
    pieces: tuple[str, ...]


@cache
def _template(some_gone: bool, some_new: bool, whole: bool, caused: bool) -> _Template:
    change = _said(some_gone, some_new, whole=False, caused=caused)
    # Of a partition that lost nobody: how it is said that all are in sync.
    clause = _said(False, True, whole=whole, caused=False).text.rpartition("; ")[2]
    head = change.text.rpartition("; ")[0]
    text = f"{head}; {clause}"
    for mark in (NAME, _GONE.mark, _NEW.mark, _NOW.mark, _CAUSE):
        text = text.replace(mark, f"\f{mark}\f")
    return _Template(change.kind, tuple(text.split("\f")))


def _said(some_gone: bool, some_new: bool, *, whole: bool, caused: bool) -> Change:
    """A change with marks: the ISR behind it is one of them."""
    now = (_NEW,) if some_new else (_NOW,)
    was = ((_GONE,) if some_gone else ()) + (() if some_new else now)
    replicas = now if whole else (*now, *was, _NO_BROKER)
    before, after = (
        PartitionRegistration(replicas, (MIGRATING,) * len(replicas), isr, 0, 0, 0)
        for isr in (was, now)
    )
    found = partition_changes(
        TOPIC, 0, before, after, lambda broker, back, where: _CAUSE if caused else None
    )
    (change,) = found
    return change


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
    replicas = steps.lists["replicas"][chosen]
    is_whole = _are_within(lists, replicas, now)
    cause = np.full(len(chosen), NO_CAUSE)
    shrank = np.flatnonzero(some_gone & ~some_new)
    cause[shrank] = _causes(steps, chosen[shrank], gone[shrank], whys)
    texts = pa.array([", ".join(map(str, each)) for each in steps.values.values], pa.string())
    named = pc.if_else(pc.equal(texts, ""), "none", texts)
    filled = {_GONE.mark: gone, _NEW.mark: new, _NOW.mark: now}
    kinds = interned(*(each.astype(np.int64) for each in (some_gone, some_new, is_whole)))
    groups = interned(kinds, (cause != NO_CAUSE).astype(np.int64))
    told = (some_gone | some_new) & ~(elected & ~some_gone)
    for number, at in enumerate(firsts_of(groups).tolist()):
        rows = np.flatnonzero((groups == number) & told)
        if not len(rows):
            continue
        shape = (some_gone[at], some_new[at], is_whole[at], cause[at] != NO_CAUSE)
        template = _template(*map(bool, shape))
        text: list[pa.Array | None] = []
        last = len(template.pieces) - 2
        for place, piece in enumerate(template.pieces):
            if piece == NAME:
                text.append(None)
            elif piece == _CAUSE:
                text.append(whys.arrow(cause[rows]))
            elif place % 2:
                code = now if place == last else filled[piece]
                text.append(named.take(pa.array(code[rows])))
            else:
                text.append(_same(piece, len(rows)))
        sides = (
            pc.binary_join_element_wise("[", texts.take(pa.array(c[rows])), "]", "")
            for c in (was, now)
        )
        who = firsts[np.where(some_gone, gone, new)[rows]]
        yield Told(
            chosen[rows],
            _same(template.kind, len(rows)),
            pa.array(who),
            *sides,
            whys.arrow(cause[rows]),
            text,
        )


def _differences(lists: Lists, was: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Who left and who came, as lists."""
    pairs = interned(was, now)
    firsts = firsts_of(pairs)
    gone, new = [], []
    for before, after in zip(was[firsts].tolist(), now[firsts].tolist(), strict=True):
        one, other = lists.values[before], lists.values[after]
        gone.append(lists.code(tuple([each for each in one if each not in other])))
        new.append(lists.code(tuple([each for each in other if each not in one])))
    return np.array(gone)[pairs], np.array(new)[pairs]


def _are_within(lists: np.ndarray, some: Ints, others: Ints) -> Flags:  # type: ignore[type-arg]
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


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)
