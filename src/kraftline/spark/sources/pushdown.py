"""Filters that Spark pushes down, as narrower options: files are skipped and positions sought.

They only narrow what is read. Spark applies all of them again to the rows that come.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kraftline.spark.sources.segment_options import SegmentOptions


def narrowed(options: SegmentOptions, filters: Sequence[Filter]) -> SegmentOptions:
    for each in filters:
        options = _narrowed(options, each)
    return options


def _narrowed(options: SegmentOptions, each: Filter) -> SegmentOptions:
    match each:
        case EqualTo(("topic",), topic):
            return _topics(options, (topic,))
        case In(("topic",), topics):
            return _topics(options, topics)
        case EqualTo(("partition",), partition):
            return _partitions(options, (partition,))
        case In(("partition",), partitions):
            return _partitions(options, partitions)
        case EqualTo(("offset",), int() as offset):
            return _offsets(options, offset, offset + 1)
        case GreaterThan(("offset",), int() as offset):
            return _offsets(options, offset + 1, None)
        case GreaterThanOrEqual(("offset",), int() as offset):
            return _offsets(options, offset, None)
        case LessThan(("offset",), int() as offset):
            return _offsets(options, 0, offset)
        case LessThanOrEqual(("offset",), int() as offset):
            return _offsets(options, 0, offset + 1)
        case EqualTo(("timestamp",), datetime() as time):
            return _times(options, _milliseconds(time), _milliseconds(time) + 1)
        case GreaterThan(("timestamp",), datetime() as time):
            return _times(options, _milliseconds(time), None)
        case GreaterThanOrEqual(("timestamp",), datetime() as time):
            return _times(options, _milliseconds(time), None)
        case LessThan(("timestamp",), datetime() as time):
            return _times(options, 0, _milliseconds(time) + 1)
        case LessThanOrEqual(("timestamp",), datetime() as time):
            return _times(options, 0, _milliseconds(time) + 1)
        case _:
            return options


def _topics(options: SegmentOptions, topics: Sequence[str]) -> SegmentOptions:
    both = frozenset(topics) & (options.only_topics or frozenset(topics))
    return replace(options, only_topics=both)


def _partitions(options: SegmentOptions, partitions: Sequence[int]) -> SegmentOptions:
    both = frozenset(partitions) & (options.only_partitions or frozenset(partitions))
    return replace(options, only_partitions=both)


def _offsets(options: SegmentOptions, start: int, end: int | None) -> SegmentOptions:
    return replace(
        options,
        start_offset=max(options.start_offset or 0, start),
        end_offset=_lower(options.end_offset, end),
    )


def _times(options: SegmentOptions, start: int, end: int | None) -> SegmentOptions:
    return replace(
        options,
        start_time=max(options.start_time or 0, start),
        end_time=_lower(options.end_time, end),
    )


def _lower(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _milliseconds(time: datetime) -> int:
    """Rounded down: a filter may be finer than what Kafka keeps."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
