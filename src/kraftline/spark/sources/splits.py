"""Which bytes of which files one task reads: parts of large segments, groups of small ones.

Parts begin where batches begin. An index file says where that is (each place is checked before it
is used); without one, the headers of the segment are walked.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from pyspark.sql.datasource import InputPartition

from kraftline.errors import KraftlineError
from kraftline.spark.inputs import InputFile, is_local, opened
from kraftline.spark.sources.segment_logs import PartitionLog, content
from kraftline.storage import offset_index, time_index
from kraftline.storage.batch_search import HEADER, implausible
from kraftline.storage.names import FileKind
from kraftline.storage.segment import Damage, SegmentReader
from kraftline.storage.txn_index import AbortedTxn

_LEAST: Final = 4 * 1024 * 1024
_TASKS: Final = 16  # as many as that where the data is small, so that all cores have work


class Bounds(Struct, frozen=True, kw_only=True):
    """Offsets and times (milliseconds) of the records wanted; starts included, ends not."""

    start_offset: int = 0
    end_offset: int | None = None
    start_time: int | None = None
    end_time: int | None = None


class Piece(Struct, frozen=True, kw_only=True):
    """Batches of one file that begin in `start` to `end`.

    `may_grow`: the last segment of a log, where a half-written batch at the end is no damage.
    `committed`: control records and the batches of `aborted` transactions are left out.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    start: int
    end: int
    may_grow: bool
    bounds: Bounds = Bounds()
    committed: bool = False
    aborted: tuple[AbortedTxn, ...] = ()


class Split(InputPartition):
    """What one task reads, one piece after the other."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(None)
        self.pieces = pieces


def piece_of(log: PartitionLog, segment: InputFile, bounds: Bounds) -> Piece | None:
    """The part of a segment in which records within the bounds can be; None where there is none.

    Only indexes are asked here; what they cannot tell, the task sees by the batches' headers.
    """
    following = log.end_of(segment)
    if following is not None and following <= bounds.start_offset:
        return None
    if bounds.end_offset is not None and segment.offset >= bounds.end_offset:
        return None
    start, end = 0, segment.size
    if segment.has_index and is_local(segment.path):
        sought = _sought(segment, bounds)
        if sought is None:
            return None
        start, end = sought
    elif bounds.start_time is not None and _is_older(segment, bounds.start_time):
        return None
    if start >= end:
        return None
    return Piece(
        path=segment.path,
        topic=log.topic,
        partition=log.partition,
        base_offset=segment.offset,
        start=start,
        end=end,
        may_grow=segment.newest,
        bounds=bounds,
    )


def _sought(segment: InputFile, bounds: Bounds) -> tuple[int, int] | None:
    """Where to begin and end in a local segment, by its indexes."""
    start, end = 0, segment.size
    with SegmentReader(segment.path, on_damage=_ignore) as reader:
        if bounds.start_offset > segment.offset:
            found = reader.position_of_offset(bounds.start_offset)
            if found is None:
                return None
            start = found
        if bounds.start_time is not None:
            if _is_older(segment, bounds.start_time):
                return None
            found = reader.position_of_time(bounds.start_time)
            if found is None:
                return None
            start = max(start, found)
        if bounds.end_offset is not None:
            found = reader.position_of_offset(bounds.end_offset)
            if found is not None:
                end = min(end, found + 1)  # that batch may begin before the end
    return start, end


def _is_older(segment: InputFile, start_time: int) -> bool:
    """Whether a closed segment's time index says that every record in it is older."""
    if segment.newest:
        return False
    try:
        index = time_index.read_time_index(
            content(_companion(segment.path, FileKind.TIME_INDEX)), segment.offset
        )
    except KraftlineError:
        return False
    return len(index) > 0 and index.timestamps[-1] < start_time


def plan_splits(pieces: Sequence[Piece], most: int) -> list[Split]:
    """Splits of about `most` bytes, fewer where there is little; empty files cost nothing."""
    total = sum(piece.end - piece.start for piece in pieces)
    size = min(most, max(_LEAST, total // _TASKS))
    splits: list[Split] = []
    waiting: list[Piece] = []
    room = size
    for part in _parts(pieces, size):
        length = part.end - part.start
        if waiting and length > room:
            splits.append(Split(tuple(waiting)))
            waiting, room = [], size
        waiting.append(part)
        room -= length
    if waiting or not splits:
        splits.append(Split(tuple(waiting)))
    return splits


def _parts(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    for piece in pieces:
        length = piece.end - piece.start
        count = -(-length // size)
        if count <= 1:
            yield piece
            continue
        wanted = [piece.start + length * n // count for n in range(1, count)]
        edges = sorted({piece.start, *_boundaries(piece, wanted), piece.end})
        for start, end in itertools.pairwise(edges):
            yield msgspec.structs.replace(piece, start=start, end=end)


def _boundaries(piece: Piece, wanted: list[int]) -> list[int]:
    """Batches' starts near the wanted positions, inside the piece."""
    index = _index(piece)
    if not is_local(piece.path):
        found = [] if index is None else _checked_remotely(piece, index, wanted)
    else:
        with SegmentReader(piece.path, on_damage=_ignore) as reader:
            if index is not None and index.positions and index.positions[-1] >= wanted[0]:
                found = reader.boundaries(wanted)
            else:
                found = _walked(reader, piece, wanted)
    return [position for position in found if piece.start < position < piece.end]


def _index(piece: Piece) -> offset_index.OffsetIndex | None:
    try:
        data = content(_companion(piece.path, FileKind.OFFSET_INDEX))
        return offset_index.read_offset_index(data, piece.base_offset)
    except KraftlineError:
        return None  # an index only saves time


def _walked(reader: SegmentReader, piece: Piece, wanted: list[int]) -> list[int]:
    found: list[int] = []
    for frame in reader.frames(piece.start):
        if len(found) == len(wanted) or frame.position >= piece.end:
            break
        if frame.position >= wanted[len(found)]:
            found.append(frame.position)
    return found


def _checked_remotely(
    piece: Piece, index: offset_index.OffsetIndex, wanted: list[int]
) -> list[int]:
    """Places of the index at which there is a header with an offset up to what the entry says."""
    found = []
    with opened(piece.path) as file:
        for position in wanted:
            slot = bisect_left(index.positions, position)
            if slot == len(index):
                continue
            file.seek(index.positions[slot])
            head = file.read(HEADER.size)
            if len(head) < HEADER.size:
                continue
            offset, length, _, magic = HEADER.unpack(head)
            last = index.base_offset + index.relative_offsets[slot]
            if implausible(offset, length, magic) is None and piece.base_offset <= offset <= last:
                found.append(index.positions[slot])
    return found


def _companion(path: str, kind: FileKind) -> str:
    head, colons, tail = path.partition("::")
    return f"{head.removesuffix(FileKind.LOG.value)}{kind.value}{colons}{tail}"


def _ignore(damage: Damage) -> None:
    """Planning passes over damage: the task that reads there tells of it."""
