"""Surveying part of a file, inside a task: headers and checksums of every batch."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

import google_crc32c
import numpy as np
import pyarrow as pa
from msgspec.structs import asdict, replace

from kraftline.errors import BadData, KraftlineError
from kraftline.records.checksums import sound_until
from kraftline.records.framing import as_view
from kraftline.records.kernel import active as kernel
from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.sources.segment_logs import on_disk
from kraftline.spark.survey_rows import DAMAGE, END, RUN, SCHEMA, SNAPSHOT, Part, SurveyRow
from kraftline.storage.segment import Damage, SegmentReader, TailKind
from kraftline.storage.snapshot_file import SnapshotReader

# A run is cut when it has so many bytes: what a task then decodes in one go, in memory.
RUN_BYTES: Final = 16 * 1024 * 1024
_ROWS: Final = 1024


def look(parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    for _, group in groupby(parts, key=lambda part: part.file.path):
        mine = list(group)
        rows: list[SurveyRow] = []
        with on_disk(mine[0].file.path) as path:
            for part in mine:
                read = _snapshot if part.file.kind is InputKind.SNAPSHOT else _segment
                rows += read(path, part)
        yield pa.RecordBatch.from_pylist([asdict(row) for row in rows], SCHEMA)


def _snapshot(path: str, part: Part) -> list[SurveyRow]:
    file = part.file
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


def _segment(path: str, part: Part) -> list[SurveyRow]:
    file = part.file
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
            start, end = _bounds(path, part)
            runs = _Runs(file, part.cuts)
            stopped = _read(reader, start, end, runs, rows)
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


def _bounds(path: str, part: Part) -> tuple[int, int]:
    """Batch boundaries for the part's positions; from 0 if the file is another than before."""
    if part.cuts:
        return part.start, part.end
    with SegmentReader(path, on_damage=lambda damage: None) as reader:
        # What came since the files were listed is taken too: a snapshot that was listed with them
        # must not seem to be ahead of the log.
        end = reader.boundary(part.end) if part.end < part.file.size else reader.size()
        if part.last is not None:
            return (part.start if _is_same(path, part.last) else 0), end
        return (reader.boundary(part.start) if part.start else 0), end


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


def _read(
    reader: SegmentReader, start: int, end: int, runs: _Runs, damage: list[SurveyRow]
) -> int | None:
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
            good = int(np.searchsorted(headers[:, kernel.POSITION], base + sound))
            runs.add(headers[:good])
            at = stop
            if sound < stop:
                # An old format, a wrong checksum, or one that is not all written: the reader knows.
                known = len(damage)
                for _ in reader.batches(base + sound, base + sound + 1):
                    pass
                tail = reader.tail
                if tail is not None and tail.kind is TailKind.PARTIAL:
                    return base + sound
                size = int(headers[good, kernel.SIZE])
                if len(damage) == known and runs.dense:
                    magic = int(headers[good, kernel.MAGIC])
                    reader.report(
                        base + sound, size, f"a batch of format {magic} in a metadata log"
                    )
                elif len(damage) == known:
                    runs.add(headers[good : good + 1])
                at = sound + size
    return None


class _Runs:
    """Batches put together to runs, many at a time.

    In a metadata log a run has no gap, and is no larger than what a task decodes in one go. In
    those of topics offsets only rise: compaction leaves gaps wherever it was. A set of messages of
    an old format counts as one record.
    """

    def __init__(self, file: InputFile, cuts: Sequence[int]) -> None:
        self._file = file.path
        self.dense = file.is_metadata
        self._cuts = np.array(cuts, np.int64)
        self._done: list[SurveyRow] = []
        self._open: SurveyRow | None = None

    def add(self, headers: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
        if not len(headers):
            return
        first = headers[:, kernel.BASE_OFFSET]
        last = first + headers[:, kernel.LAST_OFFSET_DELTA]
        epoch = headers[:, kernel.LEADER_EPOCH]
        gaps = first[1:] != last[:-1] + 1 if self.dense else first[1:] <= last[:-1]
        begins = (epoch[1:] != epoch[:-1]) | gaps
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
            records=int(np.abs(headers[:, kernel.COUNT]).sum()),
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
        if before.epoch != run.epoch or before.to_position != run.from_position:
            return False
        if run.from_offset is None or before.to_offset is None:
            return False
        if not self.dense:
            return run.from_offset >= before.to_offset
        return (
            before.to_offset == run.from_offset
            and before.to_position - before.from_position < RUN_BYTES
            and run.from_offset not in self._cuts
        )
