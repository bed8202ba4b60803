"""The table `records`: tasks decode the planned pieces of files straight into Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgspec
import pyarrow as pa

from kraftline.errors import NotKafka
from kraftline.lake.files import Added
from kraftline.spark.inputs import opened
from kraftline.spark.parquet_out import ParquetOut
from kraftline.spark.plan_types import Piece, Quarantined
from kraftline.spark.record_rows import Rows, record_rows
from kraftline.spark.record_table import PARTITIONED_BY
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# So much for a task: the more tasks, the more files.
_TASK_BYTES: Final = 256 * 1024 * 1024
_LEAST_BYTES: Final = 4 * 1024 * 1024
_SAID: Final = pa.schema([pa.field("added", pa.bool_()), pa.field("said", pa.binary())])


class Staged(NamedTuple):
    added: list[Added]
    quarantined: list[Quarantined]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.added)


def stage(spark: SparkSession, pieces: Sequence[Piece], folder: str) -> Staged:
    """Write the records of pieces below the folder of the table `records`."""
    size = sum(map(_size, pieces))
    slots = spark.sparkContext.defaultParallelism
    tasks = max(min(slots, size // _LEAST_BYTES), size // _TASK_BYTES, 1)
    work = shared_out(pieces, _size, tasks)
    said = run_tasks(spark, work, lambda mine: _write(mine, folder), _SAID)
    staged = Staged([], [])
    for is_added, text in zip(*(column.to_pylist() for column in said.columns), strict=True):
        if is_added:
            staged.added.append(msgspec.json.decode(text, type=Added))
        else:
            staged.quarantined.append(msgspec.json.decode(text, type=Quarantined))
    return staged


def _size(piece: Piece) -> int:
    return piece.to_position - piece.from_position


def _write(pieces: Sequence[Piece], folder: str) -> Iterator[pa.RecordBatch]:
    bad: list[Quarantined] = []
    with ParquetOut(folder, PARTITIONED_BY) as out:
        for piece in pieces:
            with opened(piece.file) as file:
                data = _load(file, piece)
            for found in record_rows(piece, data):
                if isinstance(found, Rows):
                    out.write((piece.cluster_id, found.record_type), found.batch)
                else:
                    bad.append(found)
    encode = msgspec.json.encode
    rows = [{"added": True, "said": encode(added)} for added in out.added]
    rows += [{"added": False, "said": encode(row)} for row in bad]
    yield pa.RecordBatch.from_pylist(rows, _SAID)


def _load(file: BinaryIO, piece: Piece) -> bytes:
    file.seek(piece.from_position)
    data = file.read(_size(piece))
    if len(data) < _size(piece):
        raise NotKafka(f"{piece.file}: became shorter while it was read; try again")
    return data
