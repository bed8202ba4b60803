"""For which offsets and times a lake has an answer, cluster by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kraftline.errors import KraftlineError
from kraftline.inspect.moments import AtOffset, AtTime, Moment, is_after, show_range, show_time
from kraftline.lake import sql
from kraftline.lake.columns import millis
from kraftline.lake.lake import Lake

_ANSWERED = ("log", "snapshot")
_MOST = 3
_WHY = {
    "gap": "nobody has that part of the log",
    "unbased": "that part of the log is there, but no state to start it from",
}


class NoAnswer(KraftlineError):
    """A question that this lake has no answer to."""


class Leg(msgspec.Struct, frozen=True):
    """A stretch of the log without a gap, with its state at every offset; times in ms."""

    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


class Hole(msgspec.Struct, frozen=True):
    """Offsets without an answer: a gap, or a stretch without a base."""

    how: str
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


class Coverage(msgspec.Struct, frozen=True):
    """What is known of one cluster, in the order of the log."""

    cluster_id: str
    legs: tuple[Leg, ...]
    holes: tuple[Hole, ...]
    committed_below: int | None

    @property
    def range(self) -> str:
        """What can be asked about, in words."""
        return show_range(self.legs)


class Place(msgspec.Struct, frozen=True):
    """A moment of one cluster's log. `offset` and `time` are None where only the other one is
    known; `at_end`: it is the state that the log ends with. `within` is the leg, where the cluster
    has several and a time alone does not tell which."""

    cluster_id: str
    offset: int | None
    time: int | None
    at_end: bool = False
    within: Leg | None = None


class Standing(msgspec.Struct, frozen=True):
    """A moment as it falls in each cluster that was asked about; `notes` are for people."""

    moment: Moment | None
    clusters: tuple[str, ...]
    places: tuple[Place, ...]
    notes: tuple[str, ...] = ()


class Window(msgspec.Struct, frozen=True):
    """From a moment to another, both included; None is no limit. `notes` are for people."""

    since: Moment | None = None
    until: Moment | None = None
    clusters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def touches(self, span: Leg | Hole) -> bool:
        """Does any of a span lie in it? Times that are not known keep nothing out."""
        match self.since:
            case AtOffset(offset=offset) if span.last_offset < offset:
                return False
            case AtTime(time=time) if 0 <= span.last_time < time:
                return False
        match self.until:
            case AtOffset(offset=offset) if span.first_offset > offset:
                return False
            case AtTime(time=time) if span.first_time > time:
                return False
        return True


def read_coverage(lake: Lake, clusters: Sequence[str] = ()) -> list[Coverage]:
    """Of these clusters, else of all; NoAnswer where the lake has no such cluster."""
    where = sql.one_of("cluster_id", clusters) if clusters else None
    rows = lake.dataset("coverage", where)
    times = {
        name: [-1 if each is None else each for each in millis(rows[name])]
        for name in ("from_time", "to_time")
    }
    plain = rows.drop_columns(list(times)).to_pylist()
    found: dict[str, list[dict[str, Any]]] = {}
    for at, row in enumerate(plain):
        said = {**row, **{name: values[at] for name, values in times.items()}}
        found.setdefault(row["cluster_id"], []).append(said)
    for cluster in clusters:
        if cluster not in found and cluster not in lake.build.clusters:
            known = sorted({*found, *lake.build.clusters, *_all(lake)})
            raise NoAnswer(f"{lake.root}: has no cluster {cluster}; there are {_some(known)}")
    return [_coverage(cluster, rows) for cluster, rows in sorted(found.items())]


def stand(lake: Lake, moment: Moment | None, clusters: Sequence[str] = ()) -> Standing:
    """Where a moment falls, None being the end of what is known. An offset is of one cluster; of a
    time, clusters that have no answer are left out with a note, unless none has one."""
    covered = read_coverage(lake, clusters)
    if not covered:
        raise NoAnswer(f"{lake.root}: no metadata log was read into this lake")
    if isinstance(moment, AtOffset):
        _one_log(covered)
    places, notes = [], []
    for each in covered:
        try:
            place, note = _place(each, moment)
        except NoAnswer as error:
            if len(covered) == 1:
                raise
            notes.append(f"cluster {each.cluster_id} is left out: {error}")
            continue
        places.append(place)
        if note:
            notes.append(note if len(covered) == 1 else f"cluster {each.cluster_id}: {note}")
    if not places:
        raise NoAnswer("; ".join(notes[:_MOST]))
    return Standing(moment, tuple(clusters), tuple(places), tuple(notes))


def stand_at_both(
    lake: Lake, first: Moment | None, second: Moment | None, clusters: Sequence[str] = ()
) -> tuple[Standing, Standing]:
    """Where two moments fall, to be compared: in clusters that have an answer for both."""
    one, other = (stand(lake, moment, clusters) for moment in (first, second))
    shared = {place.cluster_id for place in one.places} & {p.cluster_id for p in other.places}
    if not shared:
        raise NoAnswer("; ".join([*one.notes, *other.notes][:_MOST]))
    one, other = (
        msgspec.structs.replace(
            each, places=tuple(place for place in each.places if place.cluster_id in shared)
        )
        for each in (one, other)
    )
    return one, other


def window(
    lake: Lake, since: Moment | None, until: Moment | None, clusters: Sequence[str] = ()
) -> Window:
    """A window to look through. NoAnswer where all of it lies outside what is known."""
    covered = read_coverage(lake, clusters)
    if isinstance(since, AtOffset) or isinstance(until, AtOffset):
        _one_log(covered)
    if is_after(since, until):
        raise NoAnswer("the window ends before it begins: since is after until")
    asked = Window(since, until, tuple(clusters))
    if covered and not any(asked.touches(leg) for each in covered for leg in each.legs):
        known = "; ".join(f"{each.cluster_id}: {each.range}" for each in covered[:_MOST])
        raise NoAnswer(f"nothing is known of that time: this lake knows {known}")
    notes = [
        f"cluster {each.cluster_id}: nothing is told of offsets {hole.first_offset} to "
        f"{hole.last_offset}: {_WHY.get(hole.how, hole.how)}"
        for each in covered
        for hole in each.holes
        if asked.touches(hole)
    ]
    return Window(since, until, tuple(clusters), tuple(notes))


def _one_log(covered: Sequence[Coverage]) -> None:
    if len(covered) > 1:
        names = _some([each.cluster_id for each in covered])
        raise NoAnswer(
            f"an offset is of one cluster's log, and this lake has {len(covered)}: {names}. "
            "Choose one with --cluster, or give a time"
        )


def _place(known: Coverage, moment: Moment | None) -> tuple[Place, str | None]:
    if not known.legs:
        why = _WHY[known.holes[0].how] if known.holes else "nothing was read"
        raise NoAnswer(f"nothing can be answered for: {why}")
    end = known.legs[-1]
    last = Place(known.cluster_id, end.last_offset, end.last_time, at_end=True)
    match moment:
        case None:
            return last, None
        case AtOffset(offset=offset):
            return _at_offset(known, offset, last)
        case AtTime(time=time):
            return _at_time(known, time, last)
    raise AssertionError(moment)


def _at_offset(known: Coverage, offset: int, last: Place) -> tuple[Place, str | None]:
    end = known.legs[-1]
    if offset == end.last_offset:
        return last, None
    if any(leg.first_offset <= offset <= leg.last_offset for leg in known.legs):
        return Place(known.cluster_id, offset, None), None
    hole = next((h for h in known.holes if h.first_offset <= offset <= h.last_offset), None)
    if hole is None and offset > end.last_offset:
        return last, (
            f"offset {offset} is beyond the last that is known, {end.last_offset} "
            f"({show_time(end.last_time)}): this is how it stood there"
        )
    why = f" ({_WHY[hole.how]})" if hole is not None and hole.how in _WHY else ""
    raise NoAnswer(
        f"offset {offset} cannot be answered for{why}: {_nearest(known, offset)}. "
        f"This lake knows {known.range}"
    )


def _at_time(known: Coverage, time: int, last: Place) -> tuple[Place, str | None]:
    several = len(known.legs) > 1
    # The last that fits: where clocks ran apart, legs may overlap in time.
    for leg in reversed(known.legs):
        if leg.first_time <= time <= leg.last_time:
            within = leg if several else None
            return Place(known.cluster_id, None, time, within=within), None
    end = known.legs[-1]
    if time > end.last_time:
        return last, (
            f"{show_time(time)} is after the last record that is known, of "
            f"{show_time(end.last_time)} (offset {end.last_offset}): this is how it stood there"
        )
    before = [leg.last_offset for leg in known.legs if leg.last_time < time]
    after = [leg.first_offset for leg in known.legs if leg.first_time > time]
    raise NoAnswer(
        f"{show_time(time)} cannot be answered for: {_nearest_of(before[-1:], after[:1])}. "
        f"This lake knows {known.range}"
    )


def _nearest(known: Coverage, offset: int) -> str:
    before = [leg.last_offset for leg in known.legs if leg.last_offset < offset]
    after = [leg.first_offset for leg in known.legs if leg.first_offset > offset]
    return _nearest_of(before[-1:], after[:1])


def _nearest_of(before: list[int], after: list[int]) -> str:
    found = [*before, *after]
    if len(found) == 2:
        return f"the nearest offsets that can are {found[0]} and {found[1]}"
    return f"the nearest offset that can is {found[0]}"


def _coverage(cluster: str, rows: list[dict[str, Any]]) -> Coverage:
    legs: dict[int, Leg] = {}
    holes = []
    for row in sorted(rows, key=lambda row: row["from_offset"]):
        first, last = row["from_offset"], row["to_offset"] - 1
        if row["how"] not in _ANSWERED or row["leg"] is None:
            holes.append(Hole(row["how"], first, last, row["from_time"], row["to_time"]))
            continue
        leg = legs.get(row["leg"])
        begun = leg or Leg(first, last, row["from_time"], row["to_time"])
        legs[row["leg"]] = Leg(
            begun.first_offset,
            max(begun.last_offset, last),
            begun.first_time,
            max(begun.last_time, row["to_time"]),
        )
    committed = [row["committed_to"] for row in rows if row["committed_to"] is not None]
    in_order = sorted(legs.values(), key=lambda leg: leg.first_offset)
    return Coverage(cluster, tuple(in_order), tuple(holes), max(committed, default=0) or None)


def _all(lake: Lake) -> set[str]:
    return set(lake.dataset("coverage", columns=["cluster_id"])["cluster_id"].to_pylist())


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
