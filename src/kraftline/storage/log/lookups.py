"""Offsets by time, to the record."""

from __future__ import annotations

import msgspec

from kraftline.records.framing import batches
from kraftline.storage.batch_search import Frame
from kraftline.storage.log.segment import Segment
from kraftline.storage.log.segments import Segments


class OffsetAt(msgspec.Struct, frozen=True):
    """An offset, the timestamp of its record (-1: none asked for) and its leader epoch (None:
    not known)."""

    offset: int
    timestamp: int = -1
    leader_epoch: int | None = None


def first_at_or_after(segments: Segments, timestamp: int, start_offset: int) -> OffsetAt | None:
    """The first record from an offset on that is not older than a time; None if all are.

    Kafka looks into the first segment only that has such a record, also where all of them are
    before the log's start; here the search goes on.
    """
    for segment in segments.all:
        if segment.size and segment.age_timestamp >= timestamp:
            found = _first_in(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def newest(segments: Segments) -> OffsetAt | None:
    """The first record that has the largest timestamp; None where no record has one."""
    segment = max(segments.all, key=lambda each: each.latest.timestamp)
    latest = segment.latest
    if latest.timestamp < 0:
        return None
    for frame in segment.frames_from_offset(latest.offset):
        if frame.max_timestamp == latest.timestamp:
            return _record(segment, frame, latest.timestamp, 0)
    return None


def _first_in(segment: Segment, timestamp: int, start_offset: int) -> OffsetAt | None:
    for frame in segment.frames_from_time(timestamp, start_offset):
        if frame.max_timestamp >= timestamp:
            found = _record(segment, frame, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _record(segment: Segment, frame: Frame, timestamp: int, start_offset: int) -> OffsetAt | None:
    [batch] = batches(segment.read(frame.position, frame.size))
    for record in batch.records():
        if record.timestamp >= timestamp and record.offset >= start_offset:
            epoch = batch.partition_leader_epoch
            return OffsetAt(record.offset, record.timestamp, epoch if epoch >= 0 else None)
    return None
