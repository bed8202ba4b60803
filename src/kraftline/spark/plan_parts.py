"""A plan put together from legs: pieces with the log's time before each, and coverage."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.spark.plan_copies import LegParts, SnapshotCopy, Stretch, runs_of
from kraftline.spark.plan_types import LAKE, Coverage, Leg, Piece
from kraftline.spark.reached import LegReached, Reached
from kraftline.spark.survey_rows import SNAPSHOT


class PlanParts:
    """Puts a plan's parts together: pieces with their times, legs, coverage."""

    def __init__(self, cluster_id: str, known: Reached, committed_to: int, keep: bool) -> None:
        self.cluster_id, self.known, self.committed_to = cluster_id, known, committed_to
        self.keep = keep
        self.pieces: list[Piece] = []
        self.coverage: list[Coverage] = []
        self.legs: list[Leg] = []

    def put(self, legs: list[LegParts], unbased: list[Stretch]) -> Reached:
        """Take what was chosen; how far the lake comes with it."""
        self.legs = [self._leg(number, leg) for number, leg in enumerate(legs)]
        self._unbased(unbased)
        self._gaps()
        return Reached(
            legs=tuple(self._reached(number, leg) for number, leg in enumerate(legs)),
            unbased=runs_of(unbased),
            committed_to=self.committed_to,
        )

    def _reached(self, number: int, leg: LegParts) -> LegReached:
        base = None if leg.snapshot is None else leg.snapshot.base
        return LegReached(base, runs_of(leg.parts), *self._sources(number, leg))

    def _sources(self, number: int, leg: LegParts) -> tuple[str | None, str | None]:
        """Where a leg's snapshot and its log were read; of one that goes on, where it began."""
        if self._continued(number):
            known = self.known.legs[number]
            if known.log_source is not None:
                return known.base_source, known.log_source
        snapshot = leg.snapshot
        of_base = None if snapshot is None or snapshot.row is None else snapshot.row.file
        files = (part.file for part in leg.parts if part.file is not None)
        of_log = next((file.directory for file in files), None)
        return of_base, of_log

    def _continued(self, number: int) -> bool:
        return self.keep and number < len(self.known.legs)

    def _leg(self, number: int, leg: LegParts) -> Leg:
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

    def _snapshot(self, number: int, snapshot: SnapshotCopy) -> None:
        base, row, file = snapshot
        self.pieces.append(
            Piece(
                cluster_id=self.cluster_id,
                leg=number,
                file=LAKE if row is None else row.file,
                node=None if file is None else file.node,
                in_snapshot=True,
                to_position=0 if row is None else row.to_position,
                from_offset=base.offset,
                to_offset=base.end_offset,
                epoch=base.epoch,
                time=base.time,
                committed_to=self.committed_to,
            )
        )

    def _parts(self, number: int | None, parts: Sequence[Stretch], time: int) -> int:
        """The pieces of a stretch; the log's time after them."""
        for part in parts:
            row = part.row
            if row is not None or not self.keep:
                self.pieces.append(
                    Piece(
                        cluster_id=self.cluster_id,
                        leg=number,
                        file=LAKE if row is None else row.file,
                        node=None if part.file is None else part.file.node,
                        from_position=0 if row is None else row.from_position,
                        to_position=0 if row is None else row.to_position,
                        from_offset=part.from_offset,
                        to_offset=part.to_offset,
                        epoch=part.epoch,
                        time=time,
                        committed_to=self.committed_to,
                    )
                )
            time = max(time, part.max_time)
        return time

    def _unbased(self, parts: list[Stretch]) -> None:
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
