"""What a stream does where a log is not what it was when the stream last read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kraftline.spark.sources.log_walk import LogWalk
from kraftline.spark.sources.segment_logs import PartitionLog
from kraftline.spark.sources.segments import raise_damage
from kraftline.storage.segment import Damage

Offsets: TypeAlias = dict[str, int]  # the next offset of each directory


def walked(
    walks: dict[str, LogWalk], log: PartitionLog, begin: Callable[[PartitionLog], LogWalk]
) -> LogWalk:
    """The walk of a log, brought to its end; it begins anew where the log was cut."""
    walk = walks.get(log.directory)
    if walk is None or walk.is_beyond(log):
        walk = walks[log.directory] = begin(log)
    walk.advance(log)
    return walk


def last_segment(log: PartitionLog) -> LogWalk:
    """A walk for the end alone, which is in the last segment."""
    return LogWalk(log.segments[-1].offset)


def further(start: Offsets, ends: Offsets, *, skip_damage: bool) -> Offsets:
    """How far to read. A log may end before what was read of it: nothing is read twice, so what is
    written there from now on would be missed."""
    for path, end in ends.items():
        begin = start.get(path, 0)
        if end < begin and not skip_damage:
            _damaged(
                path,
                end,
                f"the log ends before offset {end}, and was read up to {begin} already: it was "
                "cut, or its topic was deleted and made again; a new checkpoint reads all of it",
            )
    return {**start, **{path: max(end, start.get(path, 0)) for path, end in ends.items()}}


def check_whole(path: str, first: int, start: int | None, end: int, *, skip_damage: bool) -> None:
    """That a log, of which this is the first offset, still has what comes next."""
    if start is not None and first > start and not skip_damage:
        last = min(first, end) - 1
        _damaged(path, start, f"offsets {start} to {last} are gone: deleted before they were read")


def _damaged(path: str, offset: int, reason: str) -> None:
    raise_damage(Damage(file=path, position=0, length=0, offset=offset, reason=reason))
