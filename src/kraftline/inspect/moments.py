"""Moments of a log: offsets and times, as people write and read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

import msgspec

_EPOCH = datetime.fromtimestamp(0, UTC)
_NO_TIME = -1  # Kafka's


class AtOffset(msgspec.Struct, frozen=True):
    offset: int


class AtTime(msgspec.Struct, frozen=True):
    """`time` in ms since 1970."""

    time: int


Moment: TypeAlias = AtOffset | AtTime


class Span(Protocol):
    """Offsets that can be answered for, both ends included, and their times in ms."""

    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def first_time(self) -> int: ...
    @property
    def last_time(self) -> int: ...


def parse_moment(text: str) -> Moment:
    """Digits are an offset; anything else is a time as ISO-8601, UTC unless it says otherwise.

    ValueError, with what to write instead, where it is neither.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return AtOffset(int(text))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an offset (digits) nor a time (like 2026-03-01T03:12:00Z)"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    # Rounded up, a record of the next millisecond would count, which was not there yet.
    return AtTime((when - _EPOCH) // timedelta(milliseconds=1))


def is_after(one: Moment | None, other: Moment | None) -> bool:
    """Only of two alike: which offset a time has is another question."""
    match one, other:
        case AtOffset(offset=first), AtOffset(offset=last):
            return first > last
        case AtTime(time=first), AtTime(time=last):
            return first > last
    return False


def show_time(time: int) -> str:
    """A time in ms as people read it."""
    if time == _NO_TIME:
        return "an unknown time"
    try:
        when = datetime.fromtimestamp(time / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time} ms"
    return f"{when:%Y-%m-%d %H:%M:%S}.{time % 1000:03d}Z"


def show_moment(offset: int, time: int) -> str:
    """Of which moment a state is: a snapshot by itself may not name an offset."""
    if offset >= 0:
        return f"offset {offset}, {show_time(time)}"
    return "a snapshot that names no offset" + (f", {show_time(time)}" if time > 0 else "")


def show_range(spans: Sequence[Span]) -> str:
    """What can be answered for, in words."""
    if not spans:
        return "nothing: there is neither a log from its start on nor a snapshot"
    said = []
    for span in spans:
        if span.last_offset < 0:
            said.append("the one moment of a snapshot that names no offset")
        elif span.first_offset == span.last_offset:
            said.append(f"offset {span.first_offset} ({show_time(span.first_time)})")
        else:
            said.append(
                f"offsets {span.first_offset} to {span.last_offset} ({show_time(span.first_time)} "
                f"to {show_time(span.last_time)})"
            )
    return ", and ".join(said)
