"""Which segments are over: decided from the oldest on, whole segments only, nothing touched.

A segment that reaches the high watermark stays, so that the log's start never passes it; so does
an empty last one.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.segment import Segment
from kraftline.storage.log.segments import Segments


def over(
    segments: Segments,
    config: LogConfig,
    *,
    start_offset: int,
    end_offset: int,
    high_watermark: int,
    now: int,
) -> int:
    """How many of the first segments go: before the log's start in any case, and by size and time
    where the topic deletes."""

    def count(is_over: Callable[[Segment, int | None], bool], first: int) -> int:
        found = first
        for slot in range(first, len(segments.all)):
            segment = segments.all[slot]
            is_last = slot == len(segments.all) - 1
            next_base = None if is_last else segments.all[slot + 1].base_offset
            if (
                (is_last and segment.size == 0)
                or high_watermark < (end_offset if next_base is None else next_base)
                or not is_over(segment, next_base)
            ):
                break
            found = slot + 1
        return found

    gone = count(lambda _, next_base: next_base is not None and next_base <= start_offset, 0)
    if not config.delete:
        return gone
    excess = sum(segment.size for segment in segments.all[gone:]) - config.retention_bytes

    def too_much(segment: Segment, _: int | None) -> bool:
        nonlocal excess
        if segment.size > excess:
            return False
        excess -= segment.size
        return True

    if config.retention_bytes >= 0 and excess >= 0:
        gone = count(too_much, gone)
    if config.retention_ms >= 0:
        gone = count(lambda segment, _: now - segment.age_timestamp > config.retention_ms, gone)
    return gone
