"""Which log is to be cleaned next, and what of it: decided, nothing touched.

The dirty part begins at the checkpoint and ends before the first segment that may not be cleaned:
the active one, the one with the last stable offset, or one that is younger than
min.compaction.lag.ms. The ratio of its bytes to all cleanable bytes is what logs are compared by.
"""

from __future__ import annotations

import msgspec

from kraftline.storage.log.partition_log import PartitionLog
from kraftline.storage.log.segment import Segment


class Dirt(msgspec.Struct, frozen=True, kw_only=True):
    """The dirty part of a log: offsets from `first_dirty` to `end` (exclusive).

    `note` says why the checkpoint could not be used, if so. `delay_ms` is how long ago
    max.compaction.lag.ms wanted it cleaned; 0 where it does not yet.
    """

    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int = 0
    note: str | None = None
    is_checkpoint_bad: bool = False

    @property
    def ratio(self) -> float:
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)

    @property
    def is_empty(self) -> bool:
        return self.clean_bytes + self.dirty_bytes == 0

    def is_due(self, least_ratio: float) -> bool:
        return (self.delay_ms > 0 and self.dirty_bytes > 0) or self.ratio > least_ratio


def segments_between(segments: tuple[Segment, ...], start: int, end: int) -> tuple[Segment, ...]:
    """Those that begin below `end`, from the one on that `start` is in."""
    if start >= end:
        return ()
    first = 0
    for n, segment in enumerate(segments):
        if segment.base_offset <= start:
            first = n
    return tuple(each for each in segments[first:] if each.base_offset < end)


def dirt_of(log: PartitionLog, checkpoint: int | None, now: int) -> Dirt:
    """What of a log is dirty and may be cleaned. Segments are looked at once, so that one moment
    is judged."""
    segments = log.segments
    active = segments[-1]
    config = log.config
    first_dirty, is_checkpoint_bad, note = _first_dirty(log, checkpoint)
    bounds = [log.last_stable_offset, active.base_offset]
    dirty = _closed_from(segments, first_dirty)
    if config.min_compaction_lag_ms > 0:
        young = now - config.min_compaction_lag_ms
        bounds += [each.base_offset for each in dirty if each.age_timestamp > young][:1]
    bound = max(first_dirty, min(bounds))
    beyond = _closed_from(segments, bound)
    end = (beyond[0] if beyond else active).base_offset
    return Dirt(
        first_dirty=first_dirty,
        end=end,
        clean_bytes=_size(segments_between(segments, -1, first_dirty)),
        dirty_bytes=_size(segments_between(segments, min(first_dirty, end), end)),
        delay_ms=_delay(dirty, config.max_compaction_lag_ms, now),
        note=note,
        is_checkpoint_bad=is_checkpoint_bad,
    )


def _first_dirty(log: PartitionLog, checkpoint: int | None) -> tuple[int, bool, str | None]:
    """Where the dirty part begins, whether the checkpoint was no use, and what to say of that."""
    start = log.start_offset
    if checkpoint is None:
        return start, False, None
    said = f"{log.name} is cleaned from its start {start} on: it was clean up to {checkpoint}, "
    if checkpoint < start:
        # Where old segments are deleted as well, that is nothing to speak of.
        return start, True, None if log.config.delete else f"{said}which is before that"
    if checkpoint > log.end_offset:
        return start, True, f"{said}which is past its end {log.end_offset}"
    return checkpoint, False, None


def _closed_from(segments: tuple[Segment, ...], offset: int) -> tuple[Segment, ...]:
    """Closed segments from the one on that has the offset."""
    return segments_between(segments[:-1], offset, segments[-1].base_offset)


def _delay(dirty: tuple[Segment, ...], most: int, now: int) -> int:
    times = [time for time in (each.first_batch_timestamp() for each in dirty) if time > 0]
    until = now - max(most, 0)
    return max(until - min(times), 0) if times else 0


def _size(segments: tuple[Segment, ...]) -> int:
    return sum(segment.size for segment in segments)
