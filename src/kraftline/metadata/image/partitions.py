"""A topic's partitions in the order of their ids, such that changing one of very many costs little.

Up to 128 are a tuple: nothing is smaller or quicker, and most topics are that. More are a tuple of
such rows, where a change makes one row and the list of rows anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from kraftline.metadata.partition import PartitionRegistration

ROW: Final = 128

_Row: TypeAlias = tuple[PartitionRegistration, ...]


class ManyPartitions(msgspec.Struct, frozen=True, gc=False):
    """More than one row. All but the last are full, so equal partitions are equal rows."""

    rows: tuple[_Row, ...]

    def __len__(self) -> int:
        return (len(self.rows) - 1) * ROW + len(self.rows[-1])

    def __getitem__(self, at: int) -> PartitionRegistration:
        if at < 0:
            at += len(self)
        return self.rows[at // ROW][at % ROW]

    def __iter__(self) -> Iterator[PartitionRegistration]:
        return chain.from_iterable(self.rows)


Partitions: TypeAlias = _Row | ManyPartitions


def in_rows(partitions: Collection[PartitionRegistration]) -> Partitions:
    whole = tuple(partitions)
    if len(whole) <= ROW:
        return whole
    return ManyPartitions(tuple([whole[at : at + ROW] for at in range(0, len(whole), ROW)]))


def changed(before: Partitions, changes: Mapping[int, PartitionRegistration]) -> Partitions | None:
    """The partitions with each change in its place, or added where the next one goes; None if that
    would leave a hole."""
    if not isinstance(before, tuple):
        return _changed_rows(before, changes)
    count = len(before)
    after = list(before)
    for partition, registration in changes.items():
        if 0 <= partition < count:
            after[partition] = registration
        elif partition == count:
            after.append(registration)
            count += 1
        else:
            return None
    return tuple(after) if count <= ROW else in_rows(after)


def _changed_rows(
    before: ManyPartitions, changes: Mapping[int, PartitionRegistration]
) -> ManyPartitions | None:
    count = len(before)
    touched: dict[int, list[PartitionRegistration]] = {}
    for partition, registration in changes.items():
        number, at = divmod(partition, ROW)
        row = touched.get(number)
        if row is None:
            known = 0 <= number < len(before.rows)
            row = touched[number] = list(before.rows[number]) if known else []
        if 0 <= partition < count:
            row[at] = registration
        elif partition == count:
            row.append(registration)
            count += 1
        else:
            return None
    rows = list(before.rows)
    for number, row in touched.items():
        # New rows come in their order: there are no holes.
        rows[number : number + 1] = [tuple(row)]
    return ManyPartitions(tuple(rows))
