"""The stretch of time that a report is about, and times as its readers see them.

A moment is a whole number of microseconds since 1970, UTC, as in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report.tables import Tables, micros

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_WIDTHS = (
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 7, 14, 30, 90, 365)),
)
# Where the log's own times are to be had, the best first.
_TIMES = (
    ("coverage", ("from_time", "to_time")),
    ("changes", ("time",)),
    ("brokers", ("valid_from_time", "valid_to_time")),
    ("topics", ("valid_from_time", "valid_to_time")),
)


class Window(Struct, frozen=True):
    """From `start` to `end`; what the data tells lies within `known_from` and `known_to`."""

    start: int
    end: int
    known_from: int
    known_to: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def width(self, most: int) -> int:
        """A round width that cuts the window into at most so many parts."""
        wanted = max(1, self.length // max(1, most - 1))
        return next((width for width in _WIDTHS if width >= wanted), wanted)


def window_of(tables: Tables, start: int | None, end: int | None) -> Window | None:
    """What was asked for, within what the data tells; None where that is no time at all. Beyond its
    end nobody knows how long a trouble went on."""
    known = _known(tables)
    if known is None:
        return None
    first, last = known
    begin = first if start is None else max(first, start)
    until = last if end is None else min(last, end)
    return Window(begin, until, first, last) if begin <= until else None


def _known(tables: Tables) -> tuple[int, int] | None:
    for name, columns in _TIMES:
        found = list(_extremes(tables[name], columns))
        if found:
            return min(found), max(found)
    return None


def _extremes(table: pa.Table, columns: Iterable[str]) -> Iterable[int]:
    for name in columns:
        bounds = pc.min_max(micros(table[name])).as_py()
        if bounds["min"] is not None:
            yield from bounds.values()


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at // SECOND, UTC).replace(microsecond=at % SECOND)


def length(micros_long: int) -> str:
    """A length of time in its two largest units, as one says it."""
    if micros_long < SECOND:
        return f"{max(1, micros_long // 1000)} ms" if micros_long else "0 s"
    if micros_long < 10 * SECOND:
        return f"{micros_long / SECOND:.1f} s".replace(".0 s", " s")
    units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
    for place, (unit, name) in enumerate(units):
        if micros_long >= unit:
            whole, rest = divmod(micros_long, unit)
            said = f"{whole:,} {name}"
            if place + 1 < len(units):
                smaller, less = units[place + 1]
                if rest // smaller:
                    said += f" {rest // smaller} {less}"
            return said
    return "0 s"


class Clock(Struct, frozen=True):
    """Writes moments as short as the window allows: a date where it spans several or the moment is
    of another one, and a year likewise."""

    window: Window

    def at(self, time: int) -> str:
        when, first, last = map(moment, (time, self.window.start, self.window.end))
        if when.date() == first.date() == last.date():
            return f"{when:%H:%M:%S}"
        if when.year == first.year == last.year:
            return f"{when:%d %b %H:%M:%S}"
        return f"{when:%d %b %Y %H:%M:%S}"

    def full(self, time: int) -> str:
        return f"{moment(time):%Y-%m-%d %H:%M:%S}"

    def since(self, start: int, end: int, ongoing: bool) -> str:
        """`03:10:00 to 03:12:30`, `since 03:10:00`; what began before the window says so."""
        if ongoing:
            return "all the time" if start <= self.window.start else f"since {self.at(start)}"
        if start <= self.window.start:
            return f"until {self.at(end)}"
        first, last = self.at(start), self.at(end)
        return f"at {first}" if first == last else f"{first} to {last}"
