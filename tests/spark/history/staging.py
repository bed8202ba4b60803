"""Metadata directories as the staged records and legs that history is made of, without a build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kraftline.inspect.history import open_history
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.history import History
from kraftline.inspect.history.legs import Leg
from kraftline.lake.files import write_file
from kraftline.lake.tables import HEALTH, HISTORY, OPEN, TABLES
from kraftline.spark.history import OpenFile, RecordFile, write_history
from kraftline.spark.parquet_out import ParquetOut
from kraftline.spark.plan import Piece
from kraftline.spark.plan_tables import LEGS
from kraftline.spark.record_rows import Rows, record_rows
from kraftline.spark.record_table import PARTITIONED_BY

Row = dict[str, Any]
Tables = dict[str, list[Row]]


class Part(NamedTuple):
    """A cluster's log from one offset up to another, as one build reads it. `done` is the end of
    the build before; records may begin below it, with a transaction that was open."""

    cluster_id: str
    history: History
    first: int = 0
    last: int = 1 << 62
    done: int = 0


def part_of(cluster_id: str, path: Path) -> Part:
    return Part(cluster_id, open_history([str(path)]))


def build(
    spark: SparkSession,
    parts: Sequence[Part],
    root: Path,
    before: dict[str, Tables] | None = None,
) -> dict[str, Tables]:
    """The tables of each cluster, all made in one go below a folder of their own."""
    written = write_history(
        spark, str(root), _staged(root, parts), _legs(parts), _opened(root, before or {})
    )
    out: dict[str, Tables] = {part.cluster_id: {name: [] for name in written} for part in parts}
    for name, files in written.items():
        for file in files:
            rows = pq.ParquetFile(root / name / file.path).read()
            assert rows.schema.names == [
                field for field in TABLES[name].columns.names if field not in file.partition
            ]
            values = file.partition
            out[str(values["cluster_id"])][name] += [{**row, **values} for row in rows.to_pylist()]
    return out


def _staged(root: Path, parts: Iterable[Part]) -> list[RecordFile]:
    with ParquetOut(f"{root}/records", PARTITIONED_BY) as out:
        for part in parts:
            for rows in _rows(part):
                out.write((part.cluster_id, rows.record_type), rows.batch)
    return [
        RecordFile(file.path, str(file.partition["cluster_id"]), str(file.partition["type"]), 0)
        for file in out.added
    ]


def _opened(root: Path, before: dict[str, Tables]) -> list[OpenFile]:
    found = []
    for cluster_id, tables in before.items():
        for table in (*HISTORY, HEALTH):
            rows = [row for row in tables[table.name] if row["state"] == OPEN]
            if rows:
                partition = {"cluster_id": cluster_id, "state": OPEN}
                whole = pa.Table.from_pylist(rows, table.columns)
                added = write_file(f"{root}/{table.name}", whole, partition)
                found.append(OpenFile(added.path, cluster_id, table.name))
    return found


def _rows(part: Part) -> Iterator[Rows]:
    for number, leg in enumerate(part.history.legs):
        for piece, data in _pieces(part, number, leg):
            for found in record_rows(piece, data):
                assert isinstance(found, Rows), found
                yield found


def _pieces(part: Part, number: int, leg: Leg) -> Iterator[tuple[Piece, bytes]]:
    committed = part.history.committed_below or 0
    common = {"cluster_id": part.cluster_id, "leg": number, "epoch": 0, "committed_to": committed}
    if leg.base is not None and part.done <= leg.first_offset < part.last:
        path = Path(leg.base.snapshot.path)
        data = path.read_bytes()
        yield (
            Piece(
                **common,  # type: ignore[arg-type]  # a dict of several types
                file=str(path),
                in_snapshot=True,
                to_position=len(data),
                from_offset=leg.first_offset,
                to_offset=leg.first_offset + 1,
                time=leg.base.time,
            ),
            data,
        )
    wanted = [b for b in leg.batches if part.first <= b.last_offset and b.base_offset < part.last]
    for batch in wanted:
        yield (
            Piece(
                **common,  # type: ignore[arg-type]  # a dict of several types
                file=batch.file,
                from_position=batch.position,
                to_position=batch.position + batch.size,
                from_offset=max(batch.base_offset, part.first),
                to_offset=batch.last_offset + 1,
                time=leg.time_at(batch.base_offset),
            ),
            _read(batch),
        )


def _read(batch: Batch) -> bytes:
    with Path(batch.file).open("rb") as file:
        file.seek(batch.position)
        return file.read(batch.size)


def _legs(parts: Iterable[Part]) -> pa.Table:
    rows = []
    for part in parts:
        legs = [leg for leg in part.history.legs if leg.first_offset < part.last]
        for number, leg in enumerate(legs):
            following = legs[number + 1] if number + 1 < len(legs) else None
            reached = min(leg.last_offset + 1, part.last)
            if following is not None and following.first_offset < part.done:
                continue
            rows.append(
                {
                    "cluster_id": part.cluster_id,
                    "leg": number,
                    "base_offset": leg.first_offset,
                    "base_time": _time(leg.first_time),
                    "next_base_offset": None if following is None else following.first_offset,
                    "next_base_time": None if following is None else _time(following.first_time),
                    "end_offset": reached,
                    "end_time": _time(leg.time_at(reached - 1)),
                    "committed_to": part.history.committed_below or 0,
                    "continued": part.done > 0 and leg.first_offset < part.done,
                }
            )
    return pa.Table.from_pylist(rows, LEGS)


def _time(ms: int) -> datetime | None:
    return None if ms < 0 else datetime.fromtimestamp(ms / 1000, UTC)
