"""Which leg of a history answers for a moment."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.inspect.history.legs import Leg
from kraftline.inspect.history.trouble import Unanswerable
from kraftline.inspect.moments import (
    AtOffset,
    AtTime,
    Moment,
    parse_moment,
    show_range,
    show_time,
)

__all__ = ["AtOffset", "AtTime", "Moment", "locate", "parse_moment", "show_range", "show_time"]


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
