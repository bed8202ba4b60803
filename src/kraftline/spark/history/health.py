"""What was wrong with partitions, and from when to when.

A step that turns a trouble on or off is an event of it; so is a new value of min.insync.replicas
for the partitions that stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from kraftline.inspect.cluster.health import (
    AT_MIN_ISR,
    NOT_PREFERRED,
    OFFLINE,
    REASSIGNING,
    RECOVERING_STATE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
)
from kraftline.metadata.partition import NO_LEADER
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.lives import moments
from kraftline.spark.history.placed import HEALTH, NEVER, NONE, Flags, Placed, joined, starts
from kraftline.spark.history.steps import Steps
from kraftline.spark.history.troubles import BITS, MIN_ISR_BITS, min_isr_troubles

KINDS: Final = tuple(BITS)


class Turns(Struct):
    """Events as columns: a row of a partition at the moment of the event, and `detail`, an index of
    texts (-1: none)."""

    rows: Placed
    kind: Ints
    is_on: Flags
    detail: Ints

    def take(self, chosen: Ints) -> Turns:
        return Turns(
            self.rows.take(chosen), self.kind[chosen], self.is_on[chosen], self.detail[chosen]
        )

    @property
    def starts(self) -> Flags:
        """Where the events of another partition or kind begin."""
        return starts(self.rows.group, self.kind)


class Unhealthy(Struct):
    """Spans as columns; `valid_to` is NEVER where the trouble lasted to the end of its leg."""

    turns: Turns
    valid_to: Ints
    valid_to_time: Ints
    details: list[str]


def unhealthy(placed: Placed, steps: Steps) -> Unhealthy:
    """What was wrong with the partitions of a chunk."""
    details = _Details(steps)
    turns = _joined(
        [
            _opened(placed, details),
            *_of_steps(steps, details),
            *_of_removals(steps),
            *_of_settings(steps, details),
        ]
    )
    rows = turns.rows
    turns = turns.take(np.lexsort((rows.index, rows.offset, turns.kind, rows.group)))
    # Of several at one offset only the last counts, and one that changes nothing does not.
    again = turns.rows.at_offset == np.roll(turns.rows.at_offset, -1)
    turns = turns.take(np.flatnonzero(_lasts(turns) | ~again))
    was_on = np.roll(turns.is_on, 1) & ~turns.starts
    turns = turns.take(np.flatnonzero(turns.is_on != was_on))
    is_last = _lasts(turns)
    valid_to = np.where(is_last, NEVER, np.roll(turns.rows.at_offset, -1))
    valid_to_time = np.where(is_last, NONE, np.roll(turns.rows.at_time, -1))
    on = np.flatnonzero(turns.is_on)
    return Unhealthy(turns.take(on), valid_to[on], valid_to_time[on], details.texts)


def _lasts(turns: Turns) -> Flags:
    return np.roll(turns.starts, -1)


def _joined(found: list[Turns]) -> Turns:
    return Turns(
        joined([each.rows for each in found]),
        np.concatenate([each.kind for each in found]),
        np.concatenate([each.is_on for each in found]),
        np.concatenate([each.detail for each in found]),
    )


def _opened(placed: Placed, details: _Details) -> Turns:
    """Rows that were open after the last build."""
    rows = placed.where((placed.how == HEALTH) & (placed.life >= 0))
    chosen = pa.array(rows.row)
    kinds = placed.table.column("kind").take(chosen).to_pylist()
    texts = placed.table.column("detail").take(chosen).to_pylist()
    numbers = np.array([KINDS.index(kind) for kind in kinds], np.int64)
    told = np.array([details.number(text) for text in texts], np.int64)
    return Turns(rows, numbers, np.ones(len(kinds), bool), told)


def _of_steps(steps: Steps, details: _Details) -> Iterator[Turns]:
    turned = np.where(steps.at.opened, 0, steps.troubles ^ steps.troubles_before)
    yield from _each(steps, turned, steps.troubles, steps.at, details, steps.min_isr)


def _of_removals(steps: Steps) -> Iterator[Turns]:
    """With its topic a partition's troubles are over."""
    lives = steps.at.lives
    ended = np.flatnonzero((steps.next_at == NEVER) & lives.removed[steps.at.life])
    rows = steps.at.take(ended)
    rows.at_offset, rows.at_time = lives.ended_at[rows.life], lives.ended_time[rows.life]
    rows.offset, rows.index = rows.at_offset, np.zeros(len(ended), np.int64)
    # A row that was open may have come to its min.insync.replicas later than it began.
    over = steps.troubles[ended] | MIN_ISR_BITS
    for number, kind in enumerate(KINDS):
        chosen = np.flatnonzero(over & BITS[kind])
        if len(chosen):
            none = np.full(len(chosen), -1)
            kinds = np.full(len(chosen), number)
            yield Turns(rows.take(chosen), kinds, np.zeros(len(chosen), bool), none)


def _of_settings(steps: Steps, details: _Details) -> Iterator[Turns]:
    """Partitions that stood still while min.insync.replicas changed."""
    at, valid_to = steps.at, steps.valid_to[0]
    is_row = steps.rows
    sizes = steps.values.sizes()
    in_sync = sizes[steps.lists["isr"]]
    wanted = sizes[steps.lists["replicas"]] - sizes[steps.lists["adding_replicas"]]
    for chosen, moment, time in _settings(at):
        met = chosen[(at.at_offset[chosen] < moment) & (moment < valid_to[chosen]) & is_row[chosen]]
        if not len(met):
            continue
        rows = at.take(met)
        now = rows.min_isr(np.full(len(met), moment))
        was = rows.min_isr(np.full(len(met), moment - 1))
        bits = min_isr_troubles(in_sync[met], wanted[met], now)
        turned = bits ^ min_isr_troubles(in_sync[met], wanted[met], was)
        rows.at_offset, rows.at_time = np.full(len(met), moment), np.full(len(met), time)
        rows.offset, rows.index = rows.at_offset, np.zeros(len(met), np.int64)
        yield from _each(steps, turned, bits, rows, details, now, met)


def _settings(at: Placed) -> Iterator[tuple[Ints, int, int]]:
    """Steps of topics whose setting changed, and when."""
    for number, leg in enumerate(at.legs):
        for offset, time in moments(leg.min_isr):
            yield np.flatnonzero(at.leg == number), offset, NONE if time is None else time
    for number, life in enumerate(at.lives.all):
        if life.min_isr:
            here = np.flatnonzero(at.life == number)
            for offset, time in moments(life.min_isr):
                yield here, offset, NONE if time is None else time


def _each(
    steps: Steps,
    turned: Ints,
    bits: Ints,
    rows: Placed,
    details: _Details,
    min_isr: Ints,
    of: Ints | None = None,
) -> Iterator[Turns]:
    """Events for every bit of `turned`, on or off as `bits` has it; `of` are the steps of the
    rows, where they are not all."""
    for number, kind in enumerate(KINDS):
        chosen = np.flatnonzero(turned & BITS[kind])
        if len(chosen):
            is_on = (bits[chosen] & BITS[kind]) != 0
            step = chosen if of is None else of[chosen]
            told = details.of(kind, step, min_isr[chosen])
            yield Turns(rows.take(chosen), np.full(len(chosen), number), is_on, told)


class _Details:
    """What to know of a trouble when it begins: texts, each made once."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        sizes = steps.values.sizes()
        lists = steps.lists
        self._in_sync = sizes[lists["isr"]]
        self._wanted = sizes[lists["replicas"]] - sizes[lists["adding_replicas"]]

    def number(self, text: str | None) -> int:
        if text is None:
            return -1
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    def of(self, kind: str, step: Ints, min_isr: Ints) -> Ints:
        columns, say = self._said(kind, step, min_isr)
        codes = interned(*columns)
        firsts = firsts_of(codes)
        values = zip(*(column[firsts].tolist() for column in columns), strict=True)
        return np.array([self.number(say(*each)) for each in values], np.int64)[codes]

    def _said(
        self, kind: str, step: Ints, min_isr: Ints
    ) -> tuple[tuple[Ints, ...], Callable[..., str | None]]:
        steps, values = self._steps, self._steps.values.values
        leader = steps.leader[step]
        match kind:
            case _ if kind == OFFLINE:
                before = np.where(steps.had_before, steps.leader[steps.before], NO_LEADER)[step]
                return (before,), _was_led
            case _ if kind == UNDER_REPLICATED:
                return (self._in_sync[step], self._wanted[step]), _in_sync
            case _ if kind in (UNDER_MIN_ISR, AT_MIN_ISR):
                return (self._in_sync[step], self._wanted[step], min_isr), _least
            case _ if kind == RECOVERING_STATE:
                return (leader,), lambda leader: f"led by {leader}"
            case _ if kind == REASSIGNING:
                moving = steps.lists["adding_replicas"], steps.lists["removing_replicas"]

                def moves(adding: int, removing: int) -> str:
                    said = (("adding", values[adding]), ("removing", values[removing]))
                    return ", ".join(f"{how} {_listed(who)}" for how, who in said if who)

                return tuple(each[step] for each in moving), moves
            case _:
                assert kind == NOT_PREFERRED
                preferred = self._steps.values.firsts(NO_LEADER)[steps.lists["replicas"][step]]
                return (leader, preferred), lambda led, by: f"led by {led}, preferred is {by}"


def _was_led(leader: int) -> str | None:
    return None if leader == NO_LEADER else f"was led by {leader}"


def _in_sync(count: int, wanted: int) -> str:
    return f"{count} of {wanted} in sync"


def _least(count: int, wanted: int, least: int) -> str:
    return f"{_in_sync(count, wanted)}, min.insync.replicas is {least}"


def _listed(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))
