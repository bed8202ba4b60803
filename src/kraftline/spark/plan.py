"""Which copy of the log is read where: a pure function from what was surveyed to a plan.

Leader epochs never fall along a log, and two copies with the same epoch at the same offset are the
same up to there. So a copy's offsets are those of the log up to where a higher epoch begins in any
copy; what it has beyond has lost. What remains is read in *legs*: stretches without a gap, from
offset 0 or from a snapshot on. Snapshots are used only where the log before them is missing.

What the lake has already takes part like a copy: logs are cut at the front as time goes by, and
what was read once stays known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from kraftline.spark.inputs import InputFile
from kraftline.spark.reached import Base, EpochRun, LegReached, Reached, below, joined
from kraftline.spark.survey import DAMAGE, SNAPSHOT, SurveyRow

LAKE: Final = ""  # the file of a piece that is read back from the table `records`
_FOREVER: Final = 1 << 63


class Piece(Struct, frozen=True, kw_only=True):
    """Part of a file to decode. Only the offsets from `from_offset` up to `to_offset` are wanted.

    `time` is the log's time before it: the running maximum so far. `leg` is None where no state
    is known to start from. Of a snapshot all is wanted, and `to_offset` is its end offset.
    """

    cluster_id: str
    leg: int | None
    file: str
    node: int | None = None
    in_snapshot: bool = False
    from_position: int = 0
    to_position: int = 0
    from_offset: int
    to_offset: int
    epoch: int
    time: int
    committed_to: int


class Leg(Struct, frozen=True, kw_only=True):
    """`base_offset` is the first offset that can be answered for, `end_offset` the one after the
    last; times in ms. `continued`: the lake has its beginning already."""

    leg: int
    base_offset: int
    base_time: int
    end_offset: int
    end_time: int
    continued: bool


class Coverage(Struct, frozen=True, kw_only=True):
    """A row of the table `coverage`, times in ms (-1: not known)."""

    leg: int | None
    how: str
    from_offset: int
    to_offset: int
    from_time: int = -1
    to_time: int = -1
    source: str | None = None


class Quarantined(Struct, frozen=True, kw_only=True):
    """A row of the table `quarantine`."""

    file: str
    kind: str
    from_position: int | None
    to_position: int | None
    from_offset: int | None
    to_offset: int | None
    reason: str


class ClusterPlan(Struct, frozen=True, kw_only=True):
    """`anew`: this does not extend what the lake has, so all of the cluster is made again.

    `cuts` are runs that must be surveyed again, cut at these offsets, before this can be trusted.
    """

    cluster_id: str
    legs: tuple[Leg, ...]
    pieces: tuple[Piece, ...]
    coverage: tuple[Coverage, ...]
    quarantine: tuple[Quarantined, ...]
    committed_to: int
    anew: bool
    reached: Reached
    cuts: dict[SurveyRow, tuple[int, ...]]


def plan_cluster(
    cluster_id: str,
    files: Sequence[InputFile],
    surveyed: dict[str, list[SurveyRow]],
    known: Reached | None = None,
    uncut: frozenset[tuple[str, int]] = frozenset(),
) -> ClusterPlan:
    """What to read of one cluster. `uncut` are (file, offset) at which a survey found no batch to
    begin: nothing can be cut there."""
    planning = _Planning(cluster_id, files, surveyed, known or Reached(), uncut)
    plan = planning.plan(keep=True)
    if known is None or not plan.anew:
        return plan
    return planning.plan(keep=False)


class _Stretch(NamedTuple):
    """Offsets of one epoch from one place; `row` is None for what the lake has."""

    epoch: int
    from_offset: int
    to_offset: int
    first_time: int
    max_time: int
    row: SurveyRow | None
    file: InputFile | None

    @property
    def directory(self) -> str:
        return LAKE if self.file is None else self.file.directory


class _Snapshot(NamedTuple):
    base: Base
    row: SurveyRow | None
    file: InputFile | None


class _Leg(NamedTuple):
    snapshot: _Snapshot | None
    parts: list[_Stretch]


class _Planning:
    def __init__(
        self,
        cluster_id: str,
        files: Sequence[InputFile],
        surveyed: dict[str, list[SurveyRow]],
        known: Reached,
        uncut: frozenset[tuple[str, int]],
    ) -> None:
        self.cluster_id, self.known, self.uncut = cluster_id, known, uncut
        self.cuts: dict[SurveyRow, set[int]] = {}
        self.quarantine: list[Quarantined] = []
        self.copies: list[_Stretch] = []
        self.snapshots: dict[int, _Snapshot] = {}
        self.committed_to = known.committed_to
        for file in files:
            if file.epoch >= 0:
                self.committed_to = max(self.committed_to, file.offset)
            for row in surveyed[file.path]:
                self._take(file, row)
        self._take_known()
        self.lost_known = False
        self.winners = self._winners()

    def _take(self, file: InputFile, row: SurveyRow) -> None:
        match row:
            case SurveyRow(what="run", from_offset=int() as first, to_offset=int() as end):
                times = (row.first_time, row.max_time)
                self.copies.append(_Stretch(row.epoch, first, end, *times, row, file))
            case SurveyRow(what="snapshot", to_offset=int() as end):
                base = Base(end, row.epoch, row.max_time)
                self.snapshots.setdefault(end, _Snapshot(base, row, file))
            case SurveyRow(what="damage"):
                self.quarantine.append(_quarantined(row, DAMAGE, row.reason or "damaged"))

    def _take_known(self) -> None:
        legs = self.known.legs
        for run in [*(run for leg in legs for run in leg.runs), *self.known.unbased]:
            times = (run.first_time, run.max_time)
            offsets = (run.from_offset, run.to_offset)
            self.copies.append(_Stretch(run.epoch, *offsets, *times, None, None))
        for leg in legs:
            if leg.base is not None:
                self.snapshots.setdefault(leg.base.end_offset, _Snapshot(leg.base, None, None))

    def _winners(self) -> list[_Stretch]:
        """What of each copy is of the log: it ends where a higher epoch begins."""
        starts: dict[int, int] = {}
        for copy in self.copies:
            starts[copy.epoch] = min(copy.from_offset, starts.get(copy.epoch, _FOREVER))
        limits: dict[int, int] = {}
        limit = _FOREVER
        for epoch in sorted(starts, reverse=True):
            limits[epoch] = limit
            limit = min(limit, starts[epoch])
        out = []
        for copy in self.copies:
            limit = limits[copy.epoch]
            if copy.to_offset > limit:
                self._lost(copy, max(limit, copy.from_offset))
                if copy.from_offset >= limit:
                    continue
                copy = copy._replace(to_offset=limit)
                if copy.row is not None and (copy.row.file, limit) in self.uncut:
                    continue  # a batch spans both: nothing of Kafka's
            out.append(copy)
        return sorted(out, key=lambda each: (each.from_offset, -each.to_offset))

    def _lost(self, copy: _Stretch, offset: int) -> None:
        if copy.row is None:
            self.lost_known = True
            return
        if copy.from_offset < offset:
            self._cut(copy.row, offset)
        reason = (
            f"leader epoch {copy.epoch} at offsets {offset} to {copy.to_offset - 1}, where another "
            "copy has a higher one: these records were never committed"
        )
        row = _quarantined(copy.row, "conflict", reason)
        self.quarantine.append(
            Quarantined(
                file=row.file,
                kind=row.kind,
                from_position=row.from_position,
                to_position=row.to_position,
                from_offset=offset,
                to_offset=row.to_offset,
                reason=reason,
            )
        )

    def _cut(self, row: SurveyRow, offset: int) -> None:
        if (row.file, offset) not in self.uncut:
            self.cuts.setdefault(row, set()).add(offset)

    def plan(self, *, keep: bool) -> ClusterPlan:
        legs, unbased = self._legs(_stretches(self.winners, keep))
        anew = bool(self.known.legs or self.known.unbased) and (
            self.lost_known or not self._extends(legs, unbased)
        )
        builder = _Builder(self, keep)
        return builder.build(legs, unbased, anew=anew)

    def _legs(self, stretches: list[list[_Stretch]]) -> tuple[list[_Leg], list[_Stretch]]:
        """Legs in the order of the log, and what no leg has."""
        legs: list[_Leg] = []
        used: set[int] = set()
        starts = [stretch[0].from_offset for stretch in stretches]
        reached = -1
        if starts and starts[0] == 0:
            legs.append(_Leg(None, stretches[0]))
            reached = stretches[0][-1].to_offset
            used.add(0)
        trimmed: list[_Stretch] = []
        for end in sorted(self.snapshots):
            if end <= reached:
                continue
            snapshot = self.snapshots[end]
            number = bisect_right(starts, end) - 1
            parts: list[_Stretch] = []
            if number >= 0 and end < stretches[number][-1].to_offset:
                before, parts = self._split(stretches[number], end)
                if parts:
                    trimmed += before
                    used.add(number)
            legs.append(_Leg(snapshot, parts))
            reached = parts[-1].to_offset if parts else end
        rest = [part for n, stretch in enumerate(stretches) if n not in used for part in stretch]
        return legs, sorted([*trimmed, *rest], key=lambda part: part.from_offset)

    def _split(self, stretch: list[_Stretch], offset: int) -> tuple[list[_Stretch], list[_Stretch]]:
        """A stretch cut in two. Nothing follows if a batch lies across: that is no base for it."""
        before: list[_Stretch] = []
        after: list[_Stretch] = []
        for part in stretch:
            if part.to_offset <= offset:
                before.append(part)
            elif part.from_offset >= offset:
                after.append(part)
            else:
                if part.row is not None and part.row.from_offset != offset:
                    if (part.row.file, offset) in self.uncut:
                        return stretch, []
                    self._cut(part.row, offset)
                before.append(part._replace(to_offset=offset))
                after.append(part._replace(from_offset=offset))
        return before, after

    def _extends(self, legs: list[_Leg], unbased: list[_Stretch]) -> bool:
        """Whether what the lake has is the beginning of this."""
        known = self.known.legs
        if len(legs) < len(known):
            return False
        for number, (old, new) in enumerate(zip(known, legs, strict=False)):
            base = None if new.snapshot is None else new.snapshot.base
            runs = _runs(new.parts)
            end = old.runs[-1].to_offset if old.runs else 0
            if base != old.base or below(runs, end) != below(old.runs, end):
                return False
            is_last = number == len(known) - 1
            if not is_last and below(runs, _FOREVER) != below(old.runs, end):
                return False
        still = _runs(unbased)
        return all(
            any(
                new.epoch == old.epoch
                and new.from_offset <= old.from_offset
                and old.to_offset <= new.to_offset
                for new in still
            )
            for old in self.known.unbased
        )


def _stretches(winners: list[_Stretch], keep: bool) -> list[list[_Stretch]]:
    """The log in stretches without a gap. Where several copies have an offset, that of the lake
    comes first (last, unless `keep`), then one that begins just there, then the one that goes on
    from where we are, then the longest."""
    out: list[list[_Stretch]] = []
    at, place = -1, 0
    ahead: list[_Stretch] = []
    while True:
        while place < len(winners) and (
            winners[place].from_offset <= at or (not ahead and winners[place].to_offset > at)
        ):
            if not ahead and winners[place].from_offset > at:
                at = winners[place].from_offset
                out.append([])
            ahead.append(winners[place])
            place += 1
        ahead = [each for each in ahead if each.to_offset > at]
        if not ahead:
            if place == len(winners):
                return out
            if winners[place].to_offset <= at:
                place += 1
            continue
        last = out[-1][-1].directory if out[-1] else None
        best = max(
            ahead,
            key=lambda each: (
                (each.row is None) == keep,
                each.from_offset == at,
                each.directory == last,
                each.to_offset,
            ),
        )
        out[-1].append(best._replace(from_offset=at))
        at = best.to_offset


def _runs(parts: Iterable[_Stretch]) -> tuple[EpochRun, ...]:
    return joined(
        EpochRun(part.epoch, part.from_offset, part.to_offset, part.first_time, part.max_time)
        for part in parts
    )


def _quarantined(row: SurveyRow, kind: str, reason: str) -> Quarantined:
    return Quarantined(
        file=row.file,
        kind=kind,
        from_position=row.from_position,
        to_position=row.to_position,
        from_offset=row.from_offset,
        to_offset=row.to_offset,
        reason=reason,
    )


class _Builder:
    """Puts a plan's parts together: pieces with their times, legs, coverage."""

    def __init__(self, planning: _Planning, keep: bool) -> None:
        self.planning, self.keep = planning, keep
        self.pieces: list[Piece] = []
        self.coverage: list[Coverage] = []

    def build(self, legs: list[_Leg], unbased: list[_Stretch], *, anew: bool) -> ClusterPlan:
        planning = self.planning
        told = [self._leg(number, leg) for number, leg in enumerate(legs)]
        self._unbased(unbased)
        self._gaps()
        reached = Reached(
            legs=tuple(self._reached(number, leg) for number, leg in enumerate(legs)),
            unbased=_runs(unbased),
            committed_to=planning.committed_to,
        )
        return ClusterPlan(
            cluster_id=planning.cluster_id,
            legs=tuple(told),
            pieces=tuple(self.pieces),
            coverage=tuple(self.coverage),
            quarantine=tuple(planning.quarantine),
            committed_to=planning.committed_to,
            anew=anew,
            reached=reached,
            cuts={row: tuple(sorted(offsets)) for row, offsets in planning.cuts.items()},
        )

    def _reached(self, number: int, leg: _Leg) -> LegReached:
        base = None if leg.snapshot is None else leg.snapshot.base
        return LegReached(base, _runs(leg.parts), *self._sources(number, leg))

    def _sources(self, number: int, leg: _Leg) -> tuple[str | None, str | None]:
        """Where a leg's snapshot and its log were read; of one that goes on, where it began."""
        if self._continued(number):
            known = self.planning.known.legs[number]
            if known.log_source is not None:
                return known.base_source, known.log_source
        snapshot = leg.snapshot
        of_base = None if snapshot is None or snapshot.row is None else snapshot.row.file
        files = (part.file for part in leg.parts if part.file is not None)
        of_log = next((file.directory for file in files), None)
        return of_base, of_log

    def _continued(self, number: int) -> bool:
        return self.keep and number < len(self.planning.known.legs)

    def _leg(self, number: int, leg: _Leg) -> Leg:
        continued = self._continued(number)
        base_source, log_source = self._sources(number, leg)
        base_offset, time = 0, -1
        if leg.snapshot is not None:
            base = leg.snapshot.base
            base_offset, time = base.offset, base.time
            if not continued:
                self._snapshot(number, leg.snapshot)
            self._covered(number, SNAPSHOT, base_offset, base_offset + 1, time, time, base_source)
        first_time = time if leg.snapshot or not leg.parts else leg.parts[0].first_time
        end, start = base_offset + 1, time
        time = self._parts(number, leg.parts, time)
        if leg.parts:
            end = leg.parts[-1].to_offset
            first = leg.parts[0]
            start = max(start, first.first_time)
            self._covered(number, "log", first.from_offset, end, start, time, log_source)
        return Leg(
            leg=number,
            base_offset=base_offset,
            base_time=first_time,
            end_offset=end,
            end_time=time,
            continued=continued,
        )

    def _snapshot(self, number: int, snapshot: _Snapshot) -> None:
        base, row, file = snapshot
        self.pieces.append(
            Piece(
                cluster_id=self.planning.cluster_id,
                leg=number,
                file=LAKE if row is None else row.file,
                node=None if file is None else file.node,
                in_snapshot=True,
                to_position=0 if row is None else row.to_position,
                from_offset=base.offset,
                to_offset=base.end_offset,
                epoch=base.epoch,
                time=base.time,
                committed_to=self.planning.committed_to,
            )
        )

    def _parts(self, number: int | None, parts: Sequence[_Stretch], time: int) -> int:
        """The pieces of a stretch; the log's time after them."""
        for part in parts:
            row = part.row
            if row is not None or not self.keep:
                self.pieces.append(
                    Piece(
                        cluster_id=self.planning.cluster_id,
                        leg=number,
                        file=LAKE if row is None else row.file,
                        node=None if part.file is None else part.file.node,
                        from_position=0 if row is None else row.from_position,
                        to_position=0 if row is None else row.to_position,
                        from_offset=part.from_offset,
                        to_offset=part.to_offset,
                        epoch=part.epoch,
                        time=time,
                        committed_to=self.planning.committed_to,
                    )
                )
            time = max(time, part.max_time)
        return time

    def _unbased(self, parts: list[_Stretch]) -> None:
        at = 0
        while at < len(parts):
            end = at + 1
            while end < len(parts) and parts[end].from_offset == parts[end - 1].to_offset:
                end += 1
            time = self._parts(None, parts[at:end], -1)
            first, last = parts[at], parts[end - 1]
            source = None if first.file is None else first.file.directory
            offsets = (first.from_offset, last.to_offset)
            self._covered(None, "unbased", *offsets, first.first_time, time, source)
            at = end

    def _covered(
        self,
        leg: int | None,
        how: str,
        from_offset: int,
        to_offset: int,
        from_time: int,
        to_time: int,
        source: str | None,
    ) -> None:
        self.coverage.append(
            Coverage(
                leg=leg,
                how=how,
                from_offset=from_offset,
                to_offset=to_offset,
                from_time=from_time,
                to_time=to_time,
                source=source,
            )
        )

    def _gaps(self) -> None:
        """Rows for what nobody has, among those for what there is. An unbased stretch gives way
        to the snapshot that stands at its last offset."""
        rows: list[Coverage] = []
        order = {"snapshot": 0, "log": 1, "unbased": 2}
        reached, time = 0, -1
        taken = sorted(self.coverage, key=lambda row: (row.from_offset, order[row.how]))
        bases = {row.from_offset for row in taken if row.how == SNAPSHOT}
        for row in taken:
            start, end = row.from_offset, row.to_offset
            if row.how == "unbased" and end - 1 in bases:
                end -= 1
            if start > reached:
                rows.append(
                    Coverage(
                        leg=None,
                        how="gap",
                        from_offset=reached,
                        to_offset=start,
                        from_time=time,
                        to_time=row.from_time,
                    )
                )
            if end > start:
                rows.append(
                    Coverage(
                        leg=row.leg,
                        how=row.how,
                        from_offset=start,
                        to_offset=end,
                        from_time=row.from_time,
                        to_time=row.to_time,
                        source=row.source,
                    )
                )
            reached, time = max(reached, end), max(time, row.to_time)
        self.coverage = rows
