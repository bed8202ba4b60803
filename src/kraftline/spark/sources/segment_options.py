"""What a reader of segments can ask for: the options of `kafka_segments`, checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from kraftline.errors import KraftlineError

SPLIT_BYTES: Final = 64 * 1024 * 1024
_NAMES: Final = (
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


class BadOption(KraftlineError):
    """An option that is not known, or a value that it does not take."""


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
    known = {name.lower(): name for name in _NAMES}
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f"; did you mean {known[near[0]]}?" if near else f": {', '.join(_NAMES)}"
            raise BadOption(f"kafka_segments has no option {name}{hint}")
        found[known[name.lower()]] = value
    decode = _one_of(found, "decode", ("none", "offsets", "transactions", "share"))
    isolation = _one_of(found, "isolation", ("read_uncommitted", "read_committed"))
    return SegmentOptions(
        paths=_paths(found),
        topics=tuple(part.strip() for part in found.get("topics", "").split(",") if part.strip()),
        start_offset=_number(found, "startOffset"),
        end_offset=_number(found, "endOffset"),
        start_time=_time(found, "startTime"),
        end_time=_time(found, "endTime"),
        decode=decode,
        committed=isolation == "read_committed",
        skip_damage=_one_of(found, "onDamage", ("fail", "skip")) == "skip",
        split_bytes=_number(found, "splitBytes", least=1) or SPLIT_BYTES,
        max_records=_number(found, "maxRecordsPerTrigger", least=1),
    )


def _paths(found: Mapping[str, str]) -> tuple[str, ...]:
    paths = [found["path"]] if found.get("path") else []
    if found.get("paths"):  # what `load([…])` becomes
        paths += msgspec.json.decode(found["paths"], type=list[str])
    if not paths:
        raise BadOption('kafka_segments needs a path: spark.read.format("kafka_segments").load(…)')
    return tuple(paths)


def _one_of(found: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    value = found.get(name, values[0]).lower()
    if value not in values:
        raise BadOption(f"{name} is {found[name]!r}, where it may be {' or '.join(values)}")
    return value


def _number(found: Mapping[str, str], name: str, least: int = 0) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise BadOption(f"{name} is {text!r}, where a number from {least} on is expected")
    return int(text)


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
