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
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kraftline.spark.inputs import InputFile
from kraftline.spark.plan_copies import (
    FOREVER,
    LegParts,
    SnapshotCopy,
    Stretch,
    runs_of,
    stretches,
)
from kraftline.spark.plan_parts import PlanParts
from kraftline.spark.plan_types import ClusterPlan, Piece, Quarantined
from kraftline.spark.reached import Base, Reached, below
from kraftline.spark.survey_rows import DAMAGE, SurveyRow

CONFLICT: Final = "conflict"

__all__ = ["ClusterPlan", "Piece", "Quarantined", "plan_cluster"]


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
        self.copies: list[Stretch] = []
        self.snapshots: dict[int, SnapshotCopy] = {}
        self.committed_to = known.committed_to
        for file in files:
            if file.epoch >= 0:
                self.committed_to = max(self.committed_to, file.offset)
            for row in surveyed[file.path]:
                if row.what == DAMAGE:
                    self.quarantine.append(_quarantined(row, DAMAGE, row.reason or "damaged"))
                elif file.is_metadata:
                    self._take(file, row)
        self._take_known()
        self.lost_known = False
        self.winners = self._winners()

    def _take(self, file: InputFile, row: SurveyRow) -> None:
        match row:
            case SurveyRow(what="run", from_offset=int() as first, to_offset=int() as end):
                times = (row.first_time, row.max_time)
                self.copies.append(Stretch(row.epoch, first, end, *times, row, file))
            case SurveyRow(what="snapshot", to_offset=int() as end):
                base = Base(end, row.epoch, row.max_time)
                self.snapshots.setdefault(end, SnapshotCopy(base, row, file))

    def _take_known(self) -> None:
        legs = self.known.legs
        for run in [*(run for leg in legs for run in leg.runs), *self.known.unbased]:
            times = (run.first_time, run.max_time)
            offsets = (run.from_offset, run.to_offset)
            self.copies.append(Stretch(run.epoch, *offsets, *times, None, None))
        for leg in legs:
            if leg.base is not None:
                self.snapshots.setdefault(leg.base.end_offset, SnapshotCopy(leg.base, None, None))

    def _winners(self) -> list[Stretch]:
        """What of each copy is of the log: it ends where a higher epoch begins."""
        starts: dict[int, int] = {}
        for copy in self.copies:
            starts[copy.epoch] = min(copy.from_offset, starts.get(copy.epoch, FOREVER))
        limits: dict[int, int] = {}
        limit = FOREVER
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

    def _lost(self, copy: Stretch, offset: int) -> None:
        if copy.row is None:
            self.lost_known = True
            return
        if copy.from_offset < offset:
            self._cut(copy.row, offset)
        self.quarantine.append(replace(_quarantined(copy.row, CONFLICT, ""), from_offset=offset))

    def _cut(self, row: SurveyRow, offset: int) -> None:
        if (row.file, offset) not in self.uncut:
            self.cuts.setdefault(row, set()).add(offset)

    def plan(self, *, keep: bool) -> ClusterPlan:
        legs, unbased = self._legs(stretches(self.winners, keep))
        anew = bool(self.known.legs or self.known.unbased) and (
            self.lost_known or not self._extends(legs, unbased)
        )
        parts = PlanParts(self.cluster_id, self.known, self.committed_to, keep)
        reached = parts.put(legs, unbased)
        return ClusterPlan(
            cluster_id=self.cluster_id,
            legs=tuple(parts.legs),
            pieces=tuple(parts.pieces),
            coverage=tuple(parts.coverage),
            quarantine=tuple(_told_once(self.quarantine)),
            committed_to=self.committed_to,
            anew=anew,
            reached=reached,
            cuts={row: tuple(sorted(offsets)) for row, offsets in self.cuts.items()},
        )

    def _legs(self, log: list[list[Stretch]]) -> tuple[list[LegParts], list[Stretch]]:
        """Legs in the order of the log, and what no leg has."""
        legs: list[LegParts] = []
        used: set[int] = set()
        starts = [stretch[0].from_offset for stretch in log]
        reached = -1
        if starts and starts[0] == 0:
            legs.append(LegParts(None, log[0]))
            reached = log[0][-1].to_offset
            used.add(0)
        trimmed: list[Stretch] = []
        for end in sorted(self.snapshots):
            if end <= reached:
                continue
            snapshot = self.snapshots[end]
            number = bisect_right(starts, end) - 1
            parts: list[Stretch] = []
            if number >= 0 and end < log[number][-1].to_offset:
                before, parts = self._split(log[number], end)
                if parts:
                    trimmed += before
                    used.add(number)
            legs.append(LegParts(snapshot, parts))
            reached = parts[-1].to_offset if parts else end
        rest = [part for n, stretch in enumerate(log) if n not in used for part in stretch]
        return legs, sorted([*trimmed, *rest], key=lambda part: part.from_offset)

    def _split(self, stretch: list[Stretch], offset: int) -> tuple[list[Stretch], list[Stretch]]:
        """A stretch cut in two. Nothing follows if a batch lies across: that is no base for it."""
        before: list[Stretch] = []
        after: list[Stretch] = []
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

    def _extends(self, legs: list[LegParts], unbased: list[Stretch]) -> bool:
        """Whether what the lake has is the beginning of this."""
        known = self.known.legs
        if len(legs) < len(known):
            return False
        for number, (old, new) in enumerate(zip(known, legs, strict=False)):
            base = None if new.snapshot is None else new.snapshot.base
            runs = runs_of(new.parts)
            end = old.runs[-1].to_offset if old.runs else 0
            if base != old.base or below(runs, end) != below(old.runs, end):
                return False
            is_last = number == len(known) - 1
            if not is_last and below(runs, FOREVER) != below(old.runs, end):
                return False
        still = runs_of(unbased)
        return all(
            any(
                new.epoch == old.epoch
                and new.from_offset <= old.from_offset
                and old.to_offset <= new.to_offset
                for new in still
            )
            for old in self.known.unbased
        )


def _told_once(rows: list[Quarantined]) -> Iterator[Quarantined]:
    """The same with neighbouring losers as one; they get their reason here."""
    last: Quarantined | None = None
    for row in sorted(rows, key=lambda row: (row.file, row.from_position or 0)):
        if last is not None and _goes_on(last, row):
            last = replace(last, to_position=row.to_position, to_offset=row.to_offset)
            continue
        if last is not None:
            yield _with_reason(last)
        last = row
    if last is not None:
        yield _with_reason(last)


def _goes_on(one: Quarantined, other: Quarantined) -> bool:
    return (
        one.kind == other.kind == CONFLICT
        and (one.file, one.to_position) == (other.file, other.from_position)
        and one.to_offset == other.from_offset
    )


def _with_reason(row: Quarantined) -> Quarantined:
    if row.kind != CONFLICT or row.to_offset is None:
        return row
    return replace(
        row,
        reason=f"offsets {row.from_offset} to {row.to_offset - 1} are of a leader that lost: "
        "another copy has a higher leader epoch there, or before",
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
