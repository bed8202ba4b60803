"""What files hold, by their batch headers: runs of sound batches, damage, whole snapshots.

A row of a survey is small and there are few: the driver plans with them, and the lake keeps them,
so that a file which did not change is not read again, and one that grew only from where it ended.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

import google_crc32c
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from kraftline.errors import BadData, KraftlineError
from kraftline.records.checksums import sound_until
from kraftline.records.framing import as_view
from kraftline.records.kernel import active as kernel
from kraftline.spark.inputs import InputFile, InputKind, is_local
from kraftline.spark.tasks import run_tasks, shared_out
from kraftline.storage.segment import Damage, SegmentReader, TailKind
from kraftline.storage.snapshot_file import SnapshotReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN: Final = "run"
DAMAGE: Final = "damage"
SNAPSHOT: Final = "snapshot"
END: Final = "end"

# A run is cut when it has so many bytes: what a task then decodes in one go, in memory.
RUN_BYTES: Final = 16 * 1024 * 1024
_SPLIT_BYTES: Final = 128 * 1024 * 1024
_ROWS: Final = 1024


class SurveyRow(Struct, frozen=True, kw_only=True):
    """Positions and offsets are half open; times are in ms.

    run: sound batches of one leader epoch, back to back; `first_time` is of the first of them,
    `max_time` the highest; `last_position` and `last_crc` are of the last, by which a file is
    known again. damage: bytes that cannot be read, and why. snapshot: a whole one, `to_offset` is
    its end offset and `max_time` that of the last record it contains. end: how far was read.
    """

    file: str
    what: str
    from_position: int = 0
    to_position: int = 0
    from_offset: int | None = None
    to_offset: int | None = None
    epoch: int = -1
    records: int = 0
    batches: int = 0
    first_time: int = -1
    max_time: int = -1
    last_position: int = -1
    last_crc: int = -1
    reason: str | None = None


SCHEMA: Final = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("what", pa.string()),
        pa.field("from_position", pa.int64()),
        pa.field("to_position", pa.int64()),
        pa.field("from_offset", pa.int64()),
        pa.field("to_offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("batches", pa.int64()),
        pa.field("first_time", pa.int64()),
        pa.field("max_time", pa.int64()),
        pa.field("last_position", pa.int64()),
        pa.field("last_crc", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)


class Known(Struct, frozen=True):
    """What the last survey of a file said, and of which state of the file."""

    size: int
    modified: int
    rows: tuple[SurveyRow, ...]


class _Piece(Struct, frozen=True):
    """Part of a file to look at; `last` is how it is known that what is before did not change.

    `cuts` are offsets at which a run must end and another begin.
    """

    file: InputFile
    start: int
    end: int
    last: SurveyRow | None = None
    cuts: tuple[int, ...] = ()


def survey(
    spark: SparkSession,
    files: Sequence[InputFile],
    known: Mapping[str, Known],
    *,
    split: int = _SPLIT_BYTES,
) -> dict[str, list[SurveyRow]]:
    """The rows of every file, in the order of positions; only what is new is read."""
    found: dict[str, list[SurveyRow]] = {}
    pieces: list[_Piece] = []
    for file in files:
        before = known.get(file.path)
        if before is not None and (before.size, before.modified) == (file.size, file.modified):
            found[file.path] = list(before.rows)
        else:
            pieces += _pieces(file, before, split)
    for path, rows in _surveyed(spark, pieces).items():
        kept = _kept(known.get(path), rows)
        found[path] = in_order([*kept, *rows])
    return found


def survey_again(
    spark: SparkSession, files: Mapping[str, InputFile], cuts: Mapping[SurveyRow, Sequence[int]]
) -> dict[SurveyRow, list[SurveyRow]]:
    """Runs cut at offsets where a plan has to cut them: the runs instead of each."""
    pieces = [
        _Piece(files[row.file], row.from_position, row.to_position, None, tuple(offsets))
        for row, offsets in cuts.items()
    ]
    rows = _surveyed(spark, pieces)
    return {
        row: [
            each
            for each in rows[row.file]
            if each.what == RUN and row.from_position <= each.from_position < row.to_position
        ]
        for row in cuts
    }


def _surveyed(spark: SparkSession, pieces: list[_Piece]) -> dict[str, list[SurveyRow]]:
    slots = spark.sparkContext.defaultParallelism
    size = sum(piece.end - piece.start for piece in pieces)
    work = shared_out(
        pieces, lambda piece: piece.end - piece.start + 4096, max(slots, size // _SPLIT_BYTES)
    )
    table = run_tasks(spark, work, _look, SCHEMA)
    found: dict[str, list[SurveyRow]] = {piece.file.path: [] for piece in pieces}
    for row in table.to_pylist():
        found[row["file"]].append(SurveyRow(**row))
    return found


def _pieces(file: InputFile, before: Known | None, split: int) -> Iterator[_Piece]:
    if file.kind is InputKind.SNAPSHOT or not is_local(file.path):
        yield _Piece(file, 0, file.size)
        return
    if before is not None and file.size > before.size:
        runs = [row for row in before.rows if row.what == RUN]
        end = next((row.to_position for row in before.rows if row.what == END), 0)
        if runs and runs[-1].to_position == end:
            yield _Piece(file, end, file.size, runs[-1])
            return
    for start in range(0, max(file.size, 1), split):
        yield _Piece(file, start, min(start + split, file.size))


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


# What follows runs inside tasks.


def _look(pieces: Sequence[_Piece]) -> Iterator[pa.RecordBatch]:
    for _, group in groupby(pieces, key=lambda piece: piece.file.path):
        mine = list(group)
        rows: list[SurveyRow] = []
        with _here(mine[0].file.path) as path:
            for piece in mine:
                look = _snapshot if piece.file.kind is InputKind.SNAPSHOT else _segment
                rows += look(path, piece)
        yield pa.RecordBatch.from_pylist([asdict(row) for row in rows], SCHEMA)


@contextmanager
def _here(path: str) -> Iterator[str]:
    """The file as a local one. All of it is read anyhow, so a remote one is copied first."""
    if is_local(path):
        yield path
        return
    import fsspec

    system, inside = fsspec.core.url_to_fs(path)
    with tempfile.TemporaryDirectory(prefix="kraftline-") as folder:
        here = os.path.join(folder, os.path.basename(inside))
        system.get_file(inside, here)
        yield here


def _snapshot(path: str, piece: _Piece) -> list[SurveyRow]:
    file = piece.file
    found = SurveyRow(
        file=file.path,
        what=SNAPSHOT,
        to_position=file.size,
        to_offset=file.offset,
        epoch=file.epoch,
    )
    try:
        with SnapshotReader(path) as reader:
            counts = [batch.count or 0 for batch in reader.batches()]
            time = reader.header.last_contained_log_timestamp
            return [replace(found, records=sum(counts), batches=len(counts), max_time=time)]
    except BadData as error:
        position, reason = error.position, error.reason
    except KraftlineError as error:
        position, reason = None, str(error)
    damage = SurveyRow(
        file=file.path,
        what=DAMAGE,
        from_position=position or 0,
        to_position=file.size,
        to_offset=file.offset,
        reason=f"the snapshot is passed over: {reason}",
    )
    return [damage]


def _segment(path: str, piece: _Piece) -> list[SurveyRow]:
    file = piece.file
    rows: list[SurveyRow] = []

    def damaged(damage: Damage) -> None:
        end = damage.position + damage.length
        rows.append(
            SurveyRow(
                file=file.path,
                what=DAMAGE,
                from_position=damage.position,
                to_position=end,
                from_offset=damage.offset,
                reason=damage.reason,
            )
        )

    try:
        with SegmentReader(path, on_damage=damaged) as reader:
            start, end = _bounds(path, piece)
            runs = _Runs(file.path, piece.cuts)
            stopped = _read(reader, start, end, runs)
            rows += runs.finish()
            tail = reader.tail
            if stopped is None and tail is not None and tail.kind is TailKind.PARTIAL:
                stopped = tail.position
                if not file.newest:
                    whole = tail.position + tail.length
                    rows.append(
                        SurveyRow(
                            file=file.path,
                            what=DAMAGE,
                            from_position=tail.position,
                            to_position=whole,
                            reason="the segment ends within a batch",
                        )
                    )
            upto = max((row.to_position for row in rows), default=start)
            if stopped is not None and file.newest:
                upto = stopped
            rows.append(SurveyRow(file=file.path, what=END, from_position=upto, to_position=upto))
    except BadData as error:
        raise error.at(file=file.path) from None
    return rows


def _bounds(path: str, piece: _Piece) -> tuple[int, int]:
    """Batch boundaries for the piece's positions; from 0 if the file is another than before."""
    last = piece.last
    with SegmentReader(path, on_damage=lambda damage: None) as reader:
        if last is not None:
            start = piece.start if _is_same(path, last) else 0
            return start, piece.end
        if piece.cuts:
            return piece.start, piece.end
        start = reader.boundary(piece.start) if piece.start else 0
        end = reader.boundary(piece.end) if piece.end < piece.file.size else piece.file.size
        return start, end


def _is_same(path: str, last: SurveyRow) -> bool:
    """Whether the last batch that was seen is there still: then so is all that came before it,
    since a follower that lost a tail to another leader has other batches from there on."""
    with open(path, "rb") as file:
        file.seek(last.last_position)
        batch = file.read(last.to_position - last.last_position)
    if len(batch) < 61 or last.last_position + len(batch) < last.to_position:
        return False
    stored = int.from_bytes(batch[17:21], "big")
    return bool(stored == last.last_crc == google_crc32c.value(batch[21:]))


def _read(reader: SegmentReader, start: int, end: int, runs: _Runs) -> int | None:
    """Tell `runs` of all sound batches. Where a half-written batch begins, if one was met."""
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    numbers = np.frombuffer(table, np.int64).reshape(_ROWS, kernel.STRIDE)
    for run in reader.runs(start, end):
        view, at = as_view(run.buffer), run.start
        base = run.position - run.start
        while at < run.end:
            count, stop, _ = kernel.scan(view, at, run.end, base, table)
            if not count:
                break
            sound = sound_until(view, at, stop)
            headers = numbers[:count]
            runs.add(headers[headers[:, kernel.POSITION] < base + sound])
            at = stop
            if sound < stop:
                # Let the reader say what is wrong: it may be a batch that is not all written.
                for _ in reader.batches(base + sound, base + sound + 1):
                    pass
                tail = reader.tail
                if tail is not None and tail.kind is TailKind.PARTIAL:
                    return base + sound
                size = int.from_bytes(view[sound + 8 : sound + 12], "big")
                at = sound + 12 + size
    return None


class _Runs:
    """Batches put together to runs, many at a time."""

    def __init__(self, file: str, cuts: Sequence[int]) -> None:
        self._file = file
        self._cuts = np.array(cuts, np.int64)
        self._done: list[SurveyRow] = []
        self._open: SurveyRow | None = None

    def add(self, headers: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
        if not len(headers):
            return
        first = headers[:, kernel.BASE_OFFSET]
        last = first + headers[:, kernel.LAST_OFFSET_DELTA]
        epoch = headers[:, kernel.LEADER_EPOCH]
        begins = (epoch[1:] != epoch[:-1]) | (first[1:] != last[:-1] + 1)
        if len(self._cuts):
            begins |= np.isin(first[1:], self._cuts)
        starts = [0, *(np.flatnonzero(begins) + 1).tolist(), len(headers)]
        for at, until in pairwise(starts):
            self._put(headers[at:until])

    def finish(self) -> list[SurveyRow]:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None
        return self._done

    def _put(self, headers: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
        head, tail = headers[0], headers[-1]
        position = int(head[kernel.POSITION])
        run = SurveyRow(
            file=self._file,
            what=RUN,
            from_position=position,
            to_position=int(tail[kernel.POSITION] + tail[kernel.SIZE]),
            from_offset=int(head[kernel.BASE_OFFSET]),
            to_offset=int(tail[kernel.BASE_OFFSET] + tail[kernel.LAST_OFFSET_DELTA]) + 1,
            epoch=int(head[kernel.LEADER_EPOCH]),
            records=int(headers[:, kernel.COUNT].sum()),
            batches=len(headers),
            first_time=int(head[kernel.MAX_TIMESTAMP]),
            max_time=int(headers[:, kernel.MAX_TIMESTAMP].max()),
            last_position=int(tail[kernel.POSITION]),
            last_crc=int(tail[kernel.CRC]) & 0xFFFFFFFF,
        )
        before = self._open
        if before is None or not self._continues(before, run):
            self.finish()
            self._open = run
            return
        self._open = replace(
            before,
            to_position=run.to_position,
            to_offset=run.to_offset,
            records=before.records + run.records,
            batches=before.batches + run.batches,
            max_time=max(before.max_time, run.max_time),
            last_position=run.last_position,
            last_crc=run.last_crc,
        )

    def _continues(self, before: SurveyRow, run: SurveyRow) -> bool:
        return (
            before.epoch == run.epoch
            and before.to_position == run.from_position
            and before.to_offset == run.from_offset
            and before.to_position - before.from_position < RUN_BYTES
            and run.from_offset not in self._cuts
        )
