"""Partitions step by step: every record with all that it leaves out from the records before it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from kraftline.metadata.partition import MIGRATING, NO_LEADER, RECOVERED, RECOVERING
from kraftline.spark.history.lists import (
    NULL,
    PAD,
    Ints,
    Lists,
    coded,
    texts_as_numbers,
)
from kraftline.spark.history.placed import (
    CLEAR,
    HEALTH,
    NEVER,
    NONE,
    WHOLE,
    Flags,
    Placed,
    numbers,
    starts,
)
from kraftline.spark.history.troubles import troubles

LISTS: Final = (
    "replicas",
    "isr",
    "adding_replicas",
    "removing_replicas",
    "elr",
    "last_known_elr",
    "directories",
)
_OF_BROKERS: Final = LISTS[:-1]
_ELR: Final = ("elr", "last_known_elr")
_NUMBERS: Final = ("leader", "recovery", "leader_epoch", "partition_epoch")


class Steps(Struct):
    """A step per record. `at` are the rows, `lists` the codes of each step's lists (directories are
    lists of numbers of `ids`), `before` the step before of the same life, -1 if there is none;
    `next_at` is NEVER for the last."""

    at: Placed
    values: Lists
    ids: list[str]
    lists: dict[str, Ints]
    leader: Ints
    recovery: Ints
    leader_epoch: Ints
    partition_epoch: Ints
    before: Ints
    next_at: Ints
    next_time: Ints
    min_isr: Ints
    troubles: Ints
    troubles_before: Ints

    @property
    def had_before(self) -> Flags:
        found: Flags = self.before >= 0
        return found

    @property
    def valid_to(self) -> tuple[Ints, Ints]:
        """Offset (NEVER: still) and time at which each step was over, or its topic."""
        lives, life = self.at.lives, self.at.life
        is_last = self.next_at == NEVER
        return (
            np.where(is_last, lives.ended_at[life], self.next_at),
            np.where(is_last, lives.ended_time[life], self.next_time),
        )

    @property
    def rows(self) -> Flags:
        """The steps that make a row: the last at their offset, of a topic that outlasts it."""
        found: Flags = (self.next_at != self.at.at_offset) & (self.at.at_offset < self.valid_to[0])
        return found


def steps_of(placed: Placed) -> Steps:
    """The steps of all rows that are in a life."""
    rows = placed.where((placed.how != HEALTH) & (placed.life >= 0))
    codes, values, ids = _lists(rows.table, rows.row)
    said = _Said(rows, {**codes, **{name: _of(rows, name) for name in _NUMBERS}})
    said = said.take(np.flatnonzero(_fitting(said.columns, values.sizes())))
    said = _with_clears(said, values)
    steps = _merged(said, values, ids)
    steps.troubles, steps.troubles_before = _troubles(steps)
    return steps


class _Said(Struct):
    """What rows say by themselves: lists by their codes, and numbers."""

    rows: Placed
    columns: dict[str, Ints]

    def take(self, chosen: Ints) -> _Said:
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return _Said(self.rows.take(chosen), columns)


def _merged(said: _Said, values: Lists, ids: list[str]) -> Steps:
    """Rows with what they leave out from the rows before."""
    rows, columns = said.rows, said.columns
    count = np.arange(len(rows.row))
    is_start = starts(rows.group, rows.life)
    start = np.maximum.accumulate(np.where(is_start, count, 0))
    is_whole = rows.how == WHOLE
    whole = _last(is_whole, start)
    led = (columns["leader"] != NONE) & ~is_whole
    elections, changes = np.cumsum(led), np.cumsum(~is_whole)
    is_last = np.append(is_start[1:], True)[: len(count)]
    next_at = np.where(is_last, NEVER, np.roll(rows.at_offset, -1))
    next_time = np.where(is_last, NONE, np.roll(rows.at_time, -1))
    carried = {
        name: columns[name][_last(columns[name] != null, start)]
        for null, names in ((NULL, LISTS), (NONE, ("leader", "recovery")))
        for name in names
    }
    leader_epoch = columns["leader_epoch"][whole] + elections - elections[whole]
    partition_epoch = columns["partition_epoch"][whole] + changes - changes[whole]
    # Nothing is known of a partition before it is said whole.
    begun = np.flatnonzero(whole >= 0)
    rows = rows.take(begun)
    lists = {name: carried[name][begun] for name in LISTS}
    lists["directories"] = _filled(lists["replicas"], lists["directories"], values, ids)
    nothing = np.zeros(0, np.int64)
    return Steps(
        rows,
        values,
        ids,
        lists,
        carried["leader"][begun],
        carried["recovery"][begun],
        leader_epoch[begun],
        partition_epoch[begun],
        np.where(starts(rows.group, rows.life), -1, np.arange(len(begun)) - 1),
        next_at[begun],
        next_time[begun],
        rows.min_isr(rows.at_offset),
        nothing,
        nothing,
    )


def _of(rows: Placed, name: str) -> Ints:
    return numbers(rows.table, name)[rows.row]


def _lists(table: pa.Table, row: Ints) -> tuple[dict[str, Ints], Lists, list[str]]:
    columns = {name: table.column(name).combine_chunks() for name in _OF_BROKERS}
    directories, ids = texts_as_numbers(table.column("directories").combine_chunks())
    codes, values = coded({**columns, "directories": directories})
    return {name: found[row] for name, found in codes.items()}, values, ids


def _fitting(codes: dict[str, Ints], sizes: Ints) -> Flags:
    """Without what no controller writes: it is passed over, as Kafka's own replay does."""
    recovery = codes["recovery"]
    known = (recovery == NONE) | (recovery == RECOVERED) | (recovery == RECOVERING)
    replicas, directories = codes["replicas"], codes["directories"]
    named = (replicas != NULL) & (directories != NULL)
    fits = (sizes[directories] == 0) | (sizes[directories] == sizes[replicas])
    found: Flags = known & (~named | fits)
    return found


def _last(chosen: Flags, start: Ints) -> Ints:
    """For each row the last chosen one so far of its life, -1 if there is none."""
    found = np.maximum.accumulate(np.where(chosen, np.arange(len(start)), -1), dtype=np.int64)
    return np.where(found >= start, found, -1)


def _with_clears(said: _Said, values: Lists) -> _Said:
    """With a row for each partition whose ELR a record cleared, where there was one to clear."""
    order = _added_clears(said.rows)
    if order is None:
        return said
    rows, taken = order
    # A row that was added says nothing but that its ELR is empty.
    added, empty = taken < 0, values.code(())
    columns = {}
    for name, column in said.columns.items():
        nothing = empty if name in _ELR else NULL if name in LISTS else NONE
        columns[name] = np.where(added, nothing, column[taken])
    chosen = np.flatnonzero(_clearing(rows, columns, values.sizes()))
    return _Said(rows, columns).take(chosen)


def _added_clears(rows: Placed) -> tuple[Placed, Ints] | None:
    """Rows with one added for each partition and record that cleared its topic's ELR, and where
    each was before, -1 for those that are new; None where there are no such records."""
    if not any(leg.clears for leg in rows.legs):
        return None
    first: dict[tuple[int, int], int] = {}
    whole = np.flatnonzero(rows.how == WHOLE)
    keys = zip(rows.group[whole].tolist(), rows.life[whole].tolist(), strict=True)
    for at, key in zip(whole.tolist(), keys, strict=True):
        first.setdefault(key, at)
    added: list[tuple[int, ...]] = []
    sources: list[int] = []
    for (_, number), at in first.items():
        life, leg = rows.lives.all[number], int(rows.leg[at])
        since = int(rows.offset[at]), int(rows.index[at])
        for clear in rows.legs[leg].clears:
            place = clear.offset, clear.index
            if clear.topic in ("", life.topic) and place > since and life.holds(*place):
                time, unit, epoch = (
                    NONE if each is None else each
                    for each in (clear.at_time, clear.unit, clear.epoch)
                )
                added.append((*place, clear.at_offset, time, unit, epoch))
                sources.append(at)
    if not added:
        return None
    here, count = np.array(sources), len(rows.row)
    columns = dict(zip(_CLEARED, np.array(added, np.int64).T, strict=True))
    both = rows.take(np.concatenate([np.arange(count), here]))
    for name, column in columns.items():
        getattr(both, name)[count:] = column
    both.how[count:] = CLEAR
    both.opened[count:] = False
    order = np.lexsort((both.index, both.offset, both.group))
    taken = np.concatenate([np.arange(count), np.full(len(here), -1)])
    return both.take(order), taken[order]


_CLEARED: Final = ("offset", "index", "at_offset", "at_time", "unit", "epoch")


def _clearing(rows: Placed, codes: dict[str, Ints], sizes: Ints) -> Flags:
    """Without the clearing of what was empty."""
    count = np.arange(len(rows.row))
    start = np.maximum.accumulate(np.where(starts(rows.group, rows.life), count, 0))
    had = np.zeros(len(count), bool)
    for name in _ELR:
        said = _last(codes[name] != NULL, start)
        earlier = np.append(-1, said[:-1])
        earlier = np.where(earlier >= start, earlier, -1)
        had |= (earlier >= 0) & (sizes[codes[name][earlier]] > 0)
    found: Flags = (rows.how != CLEAR) | had
    return found


def _filled(replicas: Ints, directories: Ints, values: Lists, ids: list[str]) -> Ints:
    """Directories as a node has them: for all replicas, or none known."""
    migrating = str(MIGRATING)
    if migrating not in ids:
        ids.append(migrating)
    nowhere = ids.index(migrating)
    sizes, named = values.sizes(), values.matrix()
    some = ((named != nowhere) & (named != PAD)).any(axis=1)
    is_whole = some[directories] & (sizes[directories] == sizes[replicas])
    found = directories.copy()
    for size in np.unique(sizes[replicas[~is_whole]]).tolist():
        found[~is_whole & (sizes[replicas] == size)] = values.code((nowhere,) * size)
    return found


def _troubles(steps: Steps) -> tuple[Ints, Ints]:
    sizes, firsts = steps.values.sizes(), steps.values.firsts(NO_LEADER)
    lists = steps.lists
    kept = {
        "leader": steps.leader,
        "recovery": steps.recovery,
        "preferred": firsts[lists["replicas"]],
        "in_sync": sizes[lists["isr"]],
        "replicas": sizes[lists["replicas"]],
        "adding": sizes[lists["adding_replicas"]],
        "removing": sizes[lists["removing_replicas"]],
    }
    now = troubles(**kept, min_isr=steps.min_isr)
    was = {name: column[steps.before] for name, column in kept.items()}
    before = troubles(**was, min_isr=steps.at.min_isr(steps.at.at_offset - 1))
    return now, np.where(steps.had_before, before, 0)
