"""Moments in a history: offsets and times, as people write and read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from kraftline.inspect.history.legs import Leg
from kraftline.inspect.history.trouble import Unanswerable


class AtOffset(msgspec.Struct, frozen=True):
    offset: int


class AtTime(msgspec.Struct, frozen=True):
    """`time` in ms since 1970."""

    time: int


Moment: TypeAlias = AtOffset | AtTime


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
    return AtTime(round(when.timestamp() * 1000))


def show_time(time: int) -> str:
    """A time in ms as people read it; whole seconds without a fraction."""
    if time < 0:
        return "an unknown time"
    try:
        when = datetime.fromtimestamp(time / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time} ms"
    return f"{when:%Y-%m-%d %H:%M:%S}.{time % 1000:03d}Z"


def show_range(legs: Sequence[Leg]) -> str:
    """What can be answered for, in words."""
    if not legs:
        return "nothing: there is neither a log from its start on nor a snapshot"
    said = []
    for leg in legs:
        if leg.first_offset == leg.last_offset:
            said.append(f"offset {leg.first_offset} ({show_time(leg.first_time)})")
        else:
            said.append(
                f"offsets {leg.first_offset} to {leg.last_offset} ({show_time(leg.first_time)} to "
                f"{show_time(leg.last_time)})"
            )
    return ", and ".join(said)


def locate(moment: Moment, legs: Sequence[Leg]) -> tuple[Leg, int]:
    """The leg that answers for a moment, and the offset; Unanswerable, with the range, if none."""
    if isinstance(moment, AtOffset):
        for leg in legs:
            if leg.first_offset <= moment.offset <= leg.last_offset:
                return leg, moment.offset
        asked = f"offset {moment.offset}"
    else:
        # The last that fits: where clocks ran apart, legs may overlap in time.
        for leg in reversed(legs):
            if leg.first_time <= moment.time <= leg.last_time:
                return leg, leg.offset_at(moment.time)
        asked = show_time(moment.time)
        if legs and moment.time > max(leg.last_time for leg in legs):
            asked += " is after the last record, and"
    raise Unanswerable(f"{asked} cannot be answered for: these files know {show_range(legs)}")
