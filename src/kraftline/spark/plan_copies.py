"""Copies of one log, and the log that they are: which of them is read where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kraftline.spark.inputs import InputFile
from kraftline.spark.plan_types import LAKE
from kraftline.spark.reached import Base, EpochRun, joined
from kraftline.spark.survey_rows import SurveyRow

FOREVER: Final = 1 << 63


class Stretch(NamedTuple):
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


class SnapshotCopy(NamedTuple):
    base: Base
    row: SurveyRow | None
    file: InputFile | None


class LegParts(NamedTuple):
    snapshot: SnapshotCopy | None
    parts: list[Stretch]


def stretches(winners: list[Stretch], keep: bool) -> list[list[Stretch]]:
    """The log in stretches without a gap. Where several copies have an offset, that of the lake
    comes first (last, unless `keep`), then one that begins just there, then the one that goes on
    from where we are, then the longest."""
    out: list[list[Stretch]] = []
    at, place = -1, 0
    ahead: list[Stretch] = []
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


def runs_of(parts: Iterable[Stretch]) -> tuple[EpochRun, ...]:
    return joined(
        EpochRun(part.epoch, part.from_offset, part.to_offset, part.first_time, part.max_time)
        for part in parts
    )
