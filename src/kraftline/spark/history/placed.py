"""Rows of partitions with the moment at which they took effect and the life of their topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct

from kraftline.spark.history.around import Around, LegAround
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.lives import Life, Span, stepped
from kraftline.spark.history.moments import BEFORE_ALL, unit_of_transaction

Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

# What a row is.
WHOLE: Final = 0  # a Partition record, or a row that was open
CHANGE: Final = 1
CLEAR: Final = 2  # its ELR was cleared, by a ClearElr record of its topic or of all
HEALTH: Final = 3  # a row of `health` that was open
LIFE: Final = 4
OVER_GAP: Final = 5

# What stands for null in columns of numbers.
NONE: Final = int(np.iinfo(np.int64).min)
NEVER: Final = int(np.iinfo(np.int64).max)  # of an offset at which something ends

_DEFAULT_MIN_ISR: Final = 1
_SIDES: Final = ("left", "right")
TopicLeg: TypeAlias = tuple[str, str, int]  # cluster, topic id, leg


def numbers(table: pa.Table, name: str, null: int = NONE) -> Ints:
    column = table.column(name).combine_chunks()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.cast(pa.int64()).fill_null(null)
    found: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def starts(*columns: Ints) -> Flags:
    """Where one of some columns differs from the row before."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


class Lives:
    """The lives of a chunk's topics, as columns."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self.all = lives

        def column(name: str, null: int) -> Ints:
            found = [getattr(life, name) for life in lives]
            return np.array([null if each is None else each for each in found], np.int64)

        self.offset, self.index = column("offset", NONE), column("index", NONE)
        self.next_offset, self.next_index = column("next_offset", NEVER), column("next_index", 0)
        self.ended_at, self.ended_time = column("ended_at", NEVER), column("ended_time", NONE)
        self.began_unit = column("began_unit", NONE)
        self.removed: Flags = np.array([life.removed for life in lives], bool)

    def hold(self, life: Ints, offset: Ints, index: Ints) -> Flags:
        """Does what stands at these places fall into these lives?"""
        begun = (offset > self.offset[life]) | (
            (offset == self.offset[life]) & (index >= self.index[life])
        )
        not_over = (offset < self.next_offset[life]) | (
            (offset == self.next_offset[life]) & (index < self.next_index[life])
        )
        held: Flags = begun & not_over
        return held


class Placed(Struct):
    """Columns of rows in the order of their partitions and of the log. `group` is the same for a
    partition of a leg, `row` is where a row's lists are; NONE is null."""

    table: pa.Table
    lives: Lives
    legs: Sequence[LegAround]
    clusters: Sequence[str]  # of each of the legs
    row: Ints
    group: Ints
    life: Ints
    leg: Ints  # an index of `legs`
    how: Ints
    partition: Ints
    offset: Ints
    index: Ints
    at_offset: Ints
    at_time: Ints
    unit: Ints
    epoch: Ints
    opened: Flags

    def where(self, chosen: Flags) -> Placed:
        return self.take(np.flatnonzero(chosen))

    def take(self, chosen: Ints) -> Placed:
        columns = {name: getattr(self, name)[chosen] for name in _COLUMNS}
        return Placed(self.table, self.lives, self.legs, self.clusters, **columns)

    def min_isr(self, offsets: Ints) -> Ints:
        """The least in-sync replicas at an offset for each row."""
        found = np.full(len(offsets), _DEFAULT_MIN_ISR, np.int64)
        for number, leg in enumerate(self.legs):
            if leg.min_isr:
                here = np.flatnonzero(self.leg == number)
                _set(found, here, offsets, leg.min_isr)
        lives = np.unique(self.life).tolist()
        own = [number for number in lives if number >= 0 and self.lives.all[number].min_isr]
        if own:
            order = np.argsort(self.life, kind="stable")
            starts, ends = (np.searchsorted(self.life[order], own, side) for side in _SIDES)
            for number, start, end in zip(own, starts.tolist(), ends.tolist(), strict=True):
                _set(found, order[start:end], offsets, self.lives.all[number].min_isr)
        return found


_COLUMNS: Final = (
    "row",
    "group",
    "life",
    "leg",
    "how",
    "partition",
    "offset",
    "index",
    "at_offset",
    "at_time",
    "unit",
    "epoch",
    "opened",
)


def joined(parts: Sequence[Placed]) -> Placed:
    """Rows of the same chunk, one part after another."""
    columns = {n: np.concatenate([getattr(each, n) for each in parts]) for n in _COLUMNS}
    first = parts[0]
    return Placed(first.table, first.lives, first.legs, first.clusters, **columns)


def _set(found: Ints, here: Ints, offsets: Ints, spans: list[Span]) -> None:
    changes, values = stepped(spans)
    held = np.array([0 if value is None else value for value in values])
    value = held[np.searchsorted(changes, offsets[here], "right")]
    found[here[value > 0]] = value[value > 0]


def placed(
    table: pa.Table, arounds: Mapping[str, Around], lives_of: Mapping[TopicLeg, list[Life]]
) -> Placed:
    """The rows of a chunk that belong to a life of their topic and took effect."""
    clusters = table.column("cluster_id").combine_chunks().dictionary_encode()
    topics = table.column("topic_id").combine_chunks().dictionary_encode()
    cluster, topic = (each.indices.to_numpy().astype(np.int64) for each in (clusters, topics))
    leg, partition = numbers(table, "leg"), numbers(table, "partition")
    names, ids = clusters.dictionary.to_pylist(), topics.dictionary.to_pylist()
    leg_codes, legs, of = _legs(cluster, leg, names, arounds)
    index = numbers(table, "index")
    offset, time = numbers(table, "offset"), numbers(table, "time")
    topic_starts = np.flatnonzero(starts(cluster, topic, leg))
    keys = [(names[cluster[at]], ids[topic[at]], int(leg[at])) for at in topic_starts.tolist()]
    life, lives = _in_lives(keys, topic_starts, offset, index, lives_of)
    found = Placed(
        table,
        lives,
        legs,
        of,
        row=np.arange(len(leg)),
        group=np.cumsum(starts(cluster, topic, leg, partition)),
        life=life,
        leg=leg_codes,
        how=numbers(table, "how"),
        partition=partition,
        offset=offset,
        index=index,
        at_offset=offset.copy(),
        at_time=time,
        unit=numbers(table, "unit"),
        epoch=numbers(table, "epoch"),
        opened=index == BEFORE_ALL,
    )
    took_effect = _with_effects(found)
    return found.where(took_effect & (found.how < LIFE))


def _legs(
    cluster: Ints, leg: Ints, names: Sequence[str], arounds: Mapping[str, Around]
) -> tuple[Ints, list[LegAround], list[str]]:
    codes = interned(cluster, leg)
    firsts = firsts_of(codes).tolist()
    of = [names[cluster[at]] for at in firsts]
    legs = [arounds[name].legs[int(leg[at])] for name, at in zip(of, firsts, strict=True)]
    return codes, legs, of


def _in_lives(
    keys: Sequence[TopicLeg],
    topic_starts: Ints,
    offset: Ints,
    index: Ints,
    lives_of: Mapping[TopicLeg, list[Life]],
) -> tuple[Ints, Lives]:
    """For each row the life that it falls into, -1 if it falls into none."""
    every: list[Life] = []
    first = np.full(len(keys), -1, np.int64)
    several: list[int] = []
    for number, key in enumerate(keys):
        found = lives_of.get(key, [])
        if found:
            first[number] = len(every)
            every += found
        if len(found) > 1:
            several.append(number)
    lives = Lives(every)
    ends = np.append(topic_starts[1:], len(offset))
    life = np.repeat(first, ends - topic_starts)
    for number in several:
        rows = slice(topic_starts[number], ends[number])
        for later in range(1, len(lives_of[keys[number]])):
            at = np.full(ends[number] - topic_starts[number], first[number] + later)
            life[rows] = np.where(lives.hold(at, offset[rows], index[rows]), at, life[rows])
    known = life >= 0
    known[known] = lives.hold(life[known], offset[known], index[known])
    return np.where(known, life, -1), lives


def _with_effects(rows: Placed) -> Flags:
    """Moves rows of transactions to where they took effect; whether each took any."""
    took = np.ones(len(rows.row), bool)
    for number, leg in enumerate(rows.legs):
        if not leg.transactions:
            continue
        here = np.flatnonzero((rows.leg == number) & (rows.unit != NONE))
        begins = np.array([each.begin for each in leg.transactions])
        ends = np.array([each.end for each in leg.transactions])
        at = np.searchsorted(begins, rows.offset[here], "right") - 1
        inside = (at >= 0) & (rows.offset[here] <= ends[at])
        here, at = here[inside], at[inside]
        took[here] = np.array([each.took_effect for each in leg.transactions])[at]
        times = [NONE if each.end_time is None else each.end_time for each in leg.transactions]
        rows.at_offset[here] = ends[at]
        rows.at_time[here] = np.array(times)[at]
        rows.unit[here] = unit_of_transaction(0) - ends[at]
    return took
