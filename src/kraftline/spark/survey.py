"""What files hold, by their batch headers: runs of sound batches, damage, whole snapshots.

A row of a survey is small and there are few: the driver plans with them, and the lake keeps them,
so that a file which did not change is not read again, and one that grew only from where it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kraftline.spark.inputs import InputFile, InputKind, is_local
from kraftline.spark.survey_rows import DAMAGE, END, RUN, SCHEMA, Part, SurveyRow
from kraftline.spark.survey_tasks import look
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DAMAGE", "RUN", "Known", "SurveyRow", "in_order", "survey", "survey_again"]

_SPLIT_BYTES: Final = 128 * 1024 * 1024


class Known(Struct, frozen=True):
    """What the last survey of a file said, and of which state of the file."""

    size: int
    modified: int
    rows: tuple[SurveyRow, ...]


def survey(
    spark: SparkSession,
    files: Sequence[InputFile],
    known: Mapping[str, Known],
    *,
    split: int = _SPLIT_BYTES,
) -> dict[str, list[SurveyRow]]:
    """The rows of every file, in the order of positions; only what is new is read."""
    found: dict[str, list[SurveyRow]] = {}
    parts: list[Part] = []
    for file in files:
        before = known.get(file.path)
        if before is not None and (before.size, before.modified) == (file.size, file.modified):
            found[file.path] = list(before.rows)
        else:
            parts += _parts(file, before, split)
    for path, rows in _surveyed(spark, parts).items():
        kept = _kept(known.get(path), rows)
        found[path] = in_order([*kept, *rows])
    return found


def survey_again(
    spark: SparkSession, files: Mapping[str, InputFile], cuts: Mapping[SurveyRow, Sequence[int]]
) -> dict[SurveyRow, list[SurveyRow]]:
    """Runs cut at offsets where a plan has to cut them: the runs instead of each."""
    parts = [
        Part(files[row.file], row.from_position, row.to_position, None, tuple(offsets))
        for row, offsets in cuts.items()
    ]
    rows = _surveyed(spark, parts)
    return {
        row: [
            each
            for each in rows[row.file]
            if each.what == RUN and row.from_position <= each.from_position < row.to_position
        ]
        for row in cuts
    }


def _surveyed(spark: SparkSession, parts: list[Part]) -> dict[str, list[SurveyRow]]:
    slots = spark.sparkContext.defaultParallelism
    size = sum(part.end - part.start for part in parts)
    work = shared_out(
        parts, lambda part: part.end - part.start + 4096, max(slots, size // _SPLIT_BYTES)
    )
    table = run_tasks(spark, work, look, SCHEMA)
    found: dict[str, list[SurveyRow]] = {part.file.path: [] for part in parts}
    for row in table.to_pylist():
        found[row["file"]].append(SurveyRow(**row))
    return found


def _parts(file: InputFile, before: Known | None, split: int) -> Iterator[Part]:
    if file.kind is InputKind.SNAPSHOT or not is_local(file.path):
        yield Part(file, 0, file.size)
        return
    if before is not None and file.size > before.size:
        runs = [row for row in before.rows if row.what == RUN]
        end = next((row.to_position for row in before.rows if row.what == END), 0)
        if runs and runs[-1].to_position == end:
            yield Part(file, end, file.size, runs[-1])
            return
    for start in range(0, max(file.size, 1), split):
        yield Part(file, start, min(start + split, file.size))


def _kept(known: Known | None, rows: Sequence[SurveyRow]) -> list[SurveyRow]:
    """What stays of the last survey: all that lies before what was looked at now."""
    if known is None:
        return []
    start = min((row.from_position for row in rows), default=0)
    return [row for row in known.rows if row.what != END and row.to_position <= start]


def in_order(rows: Iterable[SurveyRow]) -> list[SurveyRow]:
    """The rows of one file by position. A run that goes back in offsets is damage, and damage
    gets its offsets from the runs around it."""
    ordered = sorted(rows, key=lambda row: (row.from_position, row.what != RUN))
    ends = [row for row in ordered if row.what == END]
    out: list[SurveyRow] = []
    expected = 0
    for row in ordered:
        match row:
            case SurveyRow(what="run", from_offset=int() as first) if first < expected:
                reason = f"batches from offset {first} on, where {expected} was next"
                out.append(_as_damage(row, reason))
            case SurveyRow(what="run", to_offset=int() as end):
                expected = end
                out.append(row)
            case SurveyRow(what="damage" | "snapshot"):
                out.append(row)
    for at, row in enumerate(out):
        if row.what == DAMAGE and row.to_offset is None:
            after = next((r.from_offset for r in out[at:] if r.what == RUN), None)
            before = next((r.to_offset for r in reversed(out[:at]) if r.what == RUN), None)
            start = row.from_offset if row.from_offset is not None else before
            out[at] = replace(row, from_offset=start, to_offset=after)
    return [*out, *ends[-1:]]


def _as_damage(row: SurveyRow, reason: str) -> SurveyRow:
    return SurveyRow(
        file=row.file,
        what=DAMAGE,
        from_position=row.from_position,
        to_position=row.to_position,
        from_offset=row.from_offset,
        to_offset=row.to_offset,
        reason=reason,
    )
