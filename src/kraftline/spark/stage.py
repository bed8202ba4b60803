"""The table `records`: tasks decode the planned pieces of files straight into Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgspec
import pyarrow as pa

from kraftline.errors import NotKafka
from kraftline.lake.files import Added
from kraftline.spark.history.exchange import as_chunk, rows_of
from kraftline.spark.history.news import HEARD, heard_in
from kraftline.spark.inputs import opened
from kraftline.spark.parquet_out import ParquetOut
from kraftline.spark.plan_types import Piece, Quarantined
from kraftline.spark.record_rows import Rows, record_rows
from kraftline.spark.record_table import PARTITIONED_BY, struct_name
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# So much for a task: the more tasks, the more files.
_TASK_BYTES: Final = 256 * 1024 * 1024
_LEAST_BYTES: Final = 4 * 1024 * 1024
# Of more than this the driver does not want to hear: then nearly everything is news.
_NEWS_BYTES: Final = 64 * 1024 * 1024
_SAID: Final = pa.schema([pa.field("what", pa.string()), pa.field("said", pa.binary())])
_ADDED, _BAD, _HEARD = "added", "bad", "heard"


class Staged(NamedTuple):
    """`heard` are the news in the records (HEARD), if somebody wanted to know."""

    added: list[Added]
    quarantined: list[Quarantined]
    heard: pa.Table | None

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.added)


def stage(spark: SparkSession, pieces: Sequence[Piece], folder: str, *, listen: bool) -> Staged:
    """Write the records of pieces below the folder of the table `records`, and `listen` for news
    in them unless they are very many."""
    size = sum(map(_size, pieces))
    listen = listen and size <= _NEWS_BYTES
    slots = spark.sparkContext.defaultParallelism
    tasks = max(min(slots, size // _LEAST_BYTES), size // _TASK_BYTES, 1)
    work = shared_out(pieces, _size, tasks)
    said = run_tasks(spark, work, lambda mine: _write(mine, folder, listen), _SAID)
    added: list[Added] = []
    quarantined: list[Quarantined] = []
    heard = [HEARD.empty_table()]
    for what, text in zip(*(column.to_pylist() for column in said.columns), strict=True):
        if what == _ADDED:
            added.append(msgspec.json.decode(text, type=Added))
        elif what == _BAD:
            quarantined.append(msgspec.json.decode(text, type=Quarantined))
        else:
            heard.append(rows_of([text]))
    return Staged(added, quarantined, pa.concat_tables(heard) if listen else None)


def _size(piece: Piece) -> int:
    return piece.to_position - piece.from_position


def _write(pieces: Sequence[Piece], folder: str, listen: bool) -> Iterator[pa.RecordBatch]:
    bad: list[Quarantined] = []
    heard: list[pa.RecordBatch] = []
    with ParquetOut(folder, PARTITIONED_BY) as out:
        for piece in pieces:
            with opened(piece.file) as file:
                data = _load(file, piece)
            for found in record_rows(piece, data):
                if isinstance(found, Rows):
                    out.write((piece.cluster_id, found.record_type), found.batch)
                    if listen:
                        heard += _heard(piece.cluster_id, found)
                else:
                    bad.append(found)
    encode = msgspec.json.encode
    rows = [{"what": _ADDED, "said": encode(added)} for added in out.added]
    rows += [{"what": _BAD, "said": encode(row)} for row in bad]
    if heard:
        rows.append({"what": _HEARD, "said": as_chunk(pa.Table.from_batches(heard, HEARD))})
    yield pa.RecordBatch.from_pylist(rows, _SAID)


def _heard(cluster_id: str, rows: Rows) -> Iterator[pa.RecordBatch]:
    struct = struct_name(rows.record_type)
    if struct in rows.batch.schema.names:
        yield from heard_in(cluster_id, rows.record_type, rows.batch.column(struct))


def _load(file: BinaryIO, piece: Piece) -> bytes:
    file.seek(piece.from_position)
    data = file.read(_size(piece))
    if len(data) < _size(piece):
        raise NotKafka(f"{piece.file}: became shorter while it was read; try again")
    return data
