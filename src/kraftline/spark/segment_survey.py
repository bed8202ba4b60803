"""What topic segments hold, counted by batches without making rows; and what cannot be read.

Every batch is checked and uncompressed, as reading does, so damage shows here as it would there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from kraftline.records.arrow import columns_of
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Run
from kraftline.records.selection import header_column, only
from kraftline.spark.sources.segment_options import SegmentOptions, parse_options
from kraftline.spark.sources.segment_reading import BatchChoice, runs_of
from kraftline.spark.sources.segments import plan
from kraftline.spark.sources.splits import Bounds, Piece
from kraftline.spark.tasks import run_tasks
from kraftline.storage.segment import Damage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA: Final = "data"
DAMAGE: Final = "damage"
_CONTROL: Final = 0x20
_TRANSACTIONAL: Final = 0x10


class PieceCount(Struct, frozen=True, kw_only=True):
    """Part of a file. Positions and offsets are half open.

    data: whole batches. `records` are those that the isolation shows; the others are counted by
    why it does not: control records, aborted, `undecided` (behind an open transaction), `deleted`
    (below the log's start). `leader_epoch` is the highest. damage: bytes that cannot be read, and
    the `reason`.
    """

    topic: str | None
    partition: int | None
    file: str
    kind: str
    from_position: int
    to_position: int
    from_offset: int | None = None
    to_offset: int | None = None
    leader_epoch: int = -1
    records: int = 0
    control: int = 0
    aborted: int = 0
    undecided: int = 0
    deleted: int = 0
    reason: str | None = None


SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("file", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("from_position", pa.int64()),
        pa.field("to_position", pa.int64()),
        pa.field("from_offset", pa.int64()),
        pa.field("to_offset", pa.int64()),
        pa.field("leader_epoch", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("control", pa.int64()),
        pa.field("aborted", pa.int64()),
        pa.field("undecided", pa.int64()),
        pa.field("deleted", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)


_DAMAGE_COLUMNS: Final = [
    "topic",
    "partition",
    "file",
    "from_position",
    "to_position",
    "from_offset",
    "reason",
]


def count_segments(spark: SparkSession, options: SegmentOptions) -> list[PieceCount]:
    """A row per part of a file, and one per damage, in the order of files and positions."""
    work = [split.pieces for split in plan(options)]
    found = run_tasks(spark, work, _count_all, SCHEMA)
    rows = [PieceCount(**row) for row in found.to_pylist()]
    return sorted(rows, key=lambda row: (row.file, row.from_position, row.kind))


def segment_damage(spark: SparkSession, *paths: str, **options: str) -> DataFrame:
    """What `kafka_segments` cannot read of the paths: file, positions, offset and reason.

    It takes the same options. With `onDamage=skip` these bytes are what a query left out.
    """
    parsed = parse_options({**options, "paths": msgspec.json.encode(paths).decode()})
    rows = [row for row in count_segments(spark, parsed) if row.kind == DAMAGE]
    table = pa.Table.from_pylist([asdict(row) for row in rows], SCHEMA).select(_DAMAGE_COLUMNS)
    return spark.createDataFrame(table)


def _count_all(pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    rows = [row for piece in pieces for row in _count(piece)]
    yield pa.RecordBatch.from_pylist([asdict(row) for row in rows], SCHEMA)


def _count(piece: Piece) -> Iterator[PieceCount]:
    damages: list[Damage] = []
    tally = _Tally(piece)
    everything = replace(piece, bounds=Bounds(), committed=False, aborted=())
    for run in runs_of(everything, damages.append):
        tally.add(run)
    yield tally.row()
    for damage in damages:
        yield PieceCount(
            topic=piece.topic,
            partition=piece.partition,
            file=damage.file,
            kind=DAMAGE,
            from_position=damage.position,
            to_position=damage.position + damage.length,
            from_offset=damage.offset,
            reason=damage.reason,
        )


class _Tally:
    """Counts the records of a piece by what becomes of them."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._choice = BatchChoice(piece)
        self._counts: Counter[str] = Counter()
        self._first: int | None = None
        self._end: int | None = None
        self._leader_epoch = -1

    def add(self, run: Run) -> None:
        fields = (
            kernel.MAGIC,
            kernel.ATTRIBUTES,
            kernel.PRODUCER_ID,
            kernel.BASE_OFFSET,
            kernel.LAST_OFFSET_DELTA,
            kernel.COUNT,
            kernel.LEADER_EPOCH,
        )
        headers = list(zip(*(header_column(run, field) for field in fields), strict=True))
        start = self._piece.bounds.start_offset
        for _, first, last in run.groups:
            for row in range(first, last):
                magic, bits, producer_id, base, delta, count, epoch = headers[row]
                self._leader_epoch = max(self._leader_epoch, epoch)
                self._first = base if self._first is None else min(self._first, base)
                self._end = max(self._end or 0, base + delta + 1)
                fate = self._fate(bits if magic == 2 else 0, producer_id, base, delta)
                self._counts[fate] += count
                if fate == "records" and base < start:
                    below = _below(run, row, start)
                    self._counts["records"] -= below
                    self._counts["deleted"] += below

    def _fate(self, bits: int, producer_id: int, base: int, delta: int) -> str:
        piece = self._piece
        if not piece.committed:
            return "records"
        if bits & _CONTROL:
            return "control"
        if bits & _TRANSACTIONAL and self._choice.is_aborted(producer_id, base):
            return "aborted"
        if piece.bounds.end_offset is not None and base >= piece.bounds.end_offset:
            return "undecided"
        return "deleted" if base + delta < piece.bounds.start_offset else "records"

    def row(self) -> PieceCount:
        piece = self._piece
        return PieceCount(
            topic=piece.topic,
            partition=piece.partition,
            file=piece.path,
            kind=DATA,
            from_position=piece.start,
            to_position=piece.end,
            from_offset=self._first,
            to_offset=self._end,
            leader_epoch=self._leader_epoch,
            records=self._counts["records"],
            control=self._counts["control"],
            aborted=self._counts["aborted"],
            undecided=self._counts["undecided"],
            deleted=self._counts["deleted"],
        )


def _below(run: Run, row: int, offset: int) -> int:
    """How many records of one batch have a lower offset."""
    alone = only(run, [each == row for each in range(run.groups[-1].last)])
    return sum(each < offset for each in columns_of(alone, ["offset"]).column(0).to_pylist())
