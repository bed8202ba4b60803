"""What was read against what there is: counts for each partition, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kraftline.spark.segment_survey import DAMAGE, DATA, PieceCount

Partition: TypeAlias = tuple[str | None, int | None]


class PartitionCount(Struct, frozen=True, kw_only=True):
    """Offsets are half open; `written` is what the output holds.

    Of the offsets that the segments span, `records` are for readers; `control`, `aborted`,
    `undecided` (behind an open transaction) and `deleted` (below the log's start) are not; and
    `missing` ones are nobody's: compaction took them, or damage did.
    """

    topic: str | None
    partition: int | None
    from_offset: int | None
    to_offset: int | None
    records: int
    written: int
    control: int
    aborted: int
    undecided: int
    deleted: int
    missing: int
    damaged: int

    @property
    def name(self) -> str:
        return "?" if self.topic is None else f"{self.topic}-{self.partition}"


def by_partition(
    counts: Iterable[PieceCount], written: Mapping[Partition, int]
) -> list[PartitionCount]:
    groups: dict[Partition, list[PieceCount]] = {}
    for each in counts:
        groups.setdefault((each.topic, each.partition), []).append(each)
    return [
        _partition(partition, groups[partition], written.get(partition, 0))
        for partition in sorted(groups, key=lambda each: (each[0] or "", each[1] or 0))
    ]


def _partition(partition: Partition, pieces: Sequence[PieceCount], written: int) -> PartitionCount:
    data = [piece for piece in pieces if piece.kind == DATA and piece.from_offset is not None]
    start = min(
        (piece.from_offset for piece in data if piece.from_offset is not None), default=None
    )
    end = max((piece.to_offset for piece in data if piece.to_offset is not None), default=None)
    records = sum(piece.records for piece in data)
    control = sum(piece.control for piece in data)
    aborted = sum(piece.aborted for piece in data)
    undecided = sum(piece.undecided for piece in data)
    deleted = sum(piece.deleted for piece in data)
    spanned = 0 if start is None or end is None else end - start
    return PartitionCount(
        topic=partition[0],
        partition=partition[1],
        from_offset=start,
        to_offset=end,
        records=records,
        written=written,
        control=control,
        aborted=aborted,
        undecided=undecided,
        deleted=deleted,
        missing=spanned - records - control - aborted - undecided - deleted,
        damaged=sum(piece.kind == DAMAGE for piece in pieces),
    )


def problems(
    counts: Iterable[PartitionCount], damage: Sequence[PieceCount], *, all_times: bool
) -> list[str]:
    """What is wrong, a sentence each, in the order in which a person should look at it.

    `counts` are of partitions that did not change meanwhile. Records are chosen by their times
    only as they are read, so without `all_times` fewer may be written than there are.
    """
    found = [
        f"{each.name}: {each.written:,} records were written where {each.records:,} are: a fault "
        "of ours, do not use the output"
        for each in counts
        if each.written > each.records or (all_times and each.written != each.records)
    ]
    if damage:
        first = damage[0]
        size = sum(each.to_position - each.from_position for each in damage)
        ranges = "1 range" if len(damage) == 1 else f"{len(damage):,} ranges"
        found.append(
            f"{ranges} ({size:,} bytes) could not be read, and left out; the first: "
            f"{first.file}, position {first.from_position}: {first.reason}"
        )
    return found
