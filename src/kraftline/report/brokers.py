"""Brokers over time: in service, starting, shut down, lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from kraftline.report import spans
from kraftline.report.window import Window

UP = "in service"
STARTING = "starting"
LEAVING = "shutting down"
SHUT = "shut down"
LOST = "lost"
# As they are drawn; the worst last.
STATES = (UP, STARTING, LEAVING, SHUT, LOST)
_MOST = 30
_FINEST = 250


class Stretch(Struct, frozen=True):
    """A broker in one state, without a break."""

    broker: int
    state: str
    start: int
    end: int
    ongoing: bool


class Outage(Struct, frozen=True):
    """A broker out of service; `lost`: it did not say goodbye."""

    broker: int
    start: int
    end: int
    ongoing: bool
    lost: bool

    @property
    def length(self) -> int:
        return self.end - self.start


class Brokers(Struct, frozen=True):
    """`lanes` are those to draw, those with most trouble first where there are too many."""

    registered: int
    in_service: int
    outages: list[Outage]
    lanes: dict[int, list[Stretch]]
    racks: dict[int, str]
    left_out: int


def brokers(table: pa.Table, window: Window) -> Brokers:
    lanes = {
        number: list(rows)
        for number, rows in groupby(_stretches(table, window), attrgetter("broker"))
    }
    outages = [outage for lane in lanes.values() for outage in _outages(lane)]
    out = dict.fromkeys(lanes, 0)
    for outage in outages:
        out[outage.broker] += outage.length * (10 if outage.lost else 1)
    worst = sorted(lanes, key=lambda number: (-out[number], number))[:_MOST]
    ends = [lane[-1] for lane in lanes.values() if lane[-1].ongoing]
    racks = zip(table["broker"].to_pylist(), table["rack"].to_pylist(), strict=True)
    return Brokers(
        registered=len(ends),
        in_service=sum(each.state == UP for each in ends),
        outages=sorted(outages, key=lambda each: (not each.lost, -each.length)),
        lanes={number: _drawable(lanes[number], window) for number in sorted(worst)},
        racks={number: rack for number, rack in racks if rack is not None},
        left_out=len(lanes) - len(worst),
    )


def _stretches(table: pa.Table, window: Window) -> Iterator[Stretch]:
    """By broker and time, within the window; like ones that follow each other are one."""
    # States depend on what was before the window: they are worked out first.
    ever = Window(window.known_from, window.known_to, window.known_from, window.known_to)
    rows = spans.within(table, ever).sort_by(
        [("broker", "ascending"), ("valid_from_offset", "ascending")]
    )
    last: Stretch | None = None
    for stretch in _states(rows.to_pylist(), window.known_from):
        if stretch.start > window.end or stretch.end <= window.start:
            continue
        stretch = replace(
            stretch,
            start=max(stretch.start, window.start),
            end=min(stretch.end, window.end),
            ongoing=stretch.ongoing or stretch.end > window.end,
        )
        if last is not None and (last.broker, last.state) == (stretch.broker, stretch.state):
            last = replace(last, end=stretch.end, ongoing=stretch.ongoing)
        else:
            if last is not None:
                yield last
            last = stretch
    if last is not None:
        yield last


def _states(rows: list[dict[str, object]], known_from: int) -> Iterator[Stretch]:
    """A fenced broker is lost, unless it said that it would leave or has not served yet."""
    been_up: set[tuple[int, object]] = set()
    for row in rows:
        broker, start, end = row["broker"], row["start"], row["end"]
        assert isinstance(broker, int)
        assert isinstance(start, int)
        assert isinstance(end, int)
        incarnation = (broker, row["incarnation_id"])
        leaving = bool(row["in_controlled_shutdown"])
        if not row["fenced"]:
            been_up.add(incarnation)
            state = LEAVING if leaving else UP
        elif leaving:
            state = SHUT
        else:
            # Nobody knows what was before the first row of all.
            state = LOST if incarnation in been_up or start <= known_from else STARTING
        yield Stretch(broker, state, start, end, bool(row["ongoing"]))


def _outages(lane: list[Stretch]) -> Iterator[Outage]:
    """Runs of stretches out of service; a broker that registers for the first time has none."""
    for out, run in groupby(lane, lambda each: each.state != UP):
        if not out:
            continue
        stretches = list(run)
        states = {each.state for each in stretches}
        if states == {STARTING} and stretches[0] is lane[0]:
            continue
        first, last = stretches[0], stretches[-1]
        lost = LOST in states or not states & {LEAVING, SHUT}
        yield Outage(first.broker, first.start, last.end, last.ongoing, lost)


def _drawable(lane: list[Stretch], window: Window) -> list[Stretch]:
    """As it is; a broker that came and went very often without what is too short to be seen."""
    if len(lane) <= _FINEST:
        return lane
    gap = window.length // _FINEST
    out = []
    for state in STATES:
        found = [each for each in lane if each.state == state]
        for start, end in spans.joined(((each.start, each.end) for each in found), gap):
            out.append(Stretch(lane[0].broker, state, start, end, end >= window.end))
    return out
