"""What a reader of segments can ask for: the options of `kafka_segments`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from kraftline.spark.sources.options import (
    SPLIT_BYTES,
    BadOption,
    known_options,
    number,
    one_of,
    paths_of,
)

NAMES: Final = (
    "path",
    "paths",
    "topics",
    "startOffset",
    "endOffset",
    "startTime",
    "endTime",
    "decode",
    "isolation",
    "onDamage",
    "splitBytes",
    "maxRecordsPerTrigger",
)


class SegmentOptions(Struct, frozen=True, kw_only=True):
    """Starts are included, ends are not; times are in milliseconds since 1970. `only_topics` and
    `only_partitions` come from a query's filters."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    start_offset: int | None = None
    end_offset: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    decode: str = "none"
    committed: bool = False
    skip_damage: bool = False
    split_bytes: int = SPLIT_BYTES
    max_records: int | None = None
    only_topics: frozenset[str] | None = None
    only_partitions: frozenset[int] | None = None


def parse_options(given: Mapping[str, str]) -> SegmentOptions:
    """The options as Spark hands them over, whatever the case of their names."""
    found = known_options("kafka_segments", given, NAMES)
    decode = one_of(found, "decode", ("none", "offsets", "transactions", "share"))
    isolation = one_of(found, "isolation", ("read_uncommitted", "read_committed"))
    return SegmentOptions(
        paths=paths_of("kafka_segments", found),
        topics=tuple(part.strip() for part in found.get("topics", "").split(",") if part.strip()),
        start_offset=number(found, "startOffset"),
        end_offset=number(found, "endOffset"),
        start_time=_time(found, "startTime"),
        end_time=_time(found, "endTime"),
        decode=decode,
        committed=isolation == "read_committed",
        skip_damage=one_of(found, "onDamage", ("fail", "skip")) == "skip",
        split_bytes=number(found, "splitBytes", least=1) or SPLIT_BYTES,
        max_records=number(found, "maxRecordsPerTrigger", least=1),
    )


def _time(found: Mapping[str, str], name: str) -> int | None:
    """ISO-8601, in UTC unless it says otherwise; or milliseconds since 1970."""
    text = found.get(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadOption(
            f"{name} is {text!r}, which is not a time; give it like 2026-03-01T03:12:00Z"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)
