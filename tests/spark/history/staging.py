"""Metadata directories as the staged records and legs that history is made of, without a build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kraftline.inspect.history import open_history
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.history import History
from kraftline.inspect.history.legs import Leg
from kraftline.lake.tables import TABLES
from kraftline.spark.history import history_tables
from kraftline.spark.plan import Piece
from kraftline.spark.record_rows import Rows, record_rows
from kraftline.spark.record_table import records_table

_LEGS = (
    "cluster_id string, leg int, base_offset long, base_time timestamp, next_base_offset long, "
    "next_base_time timestamp, end_offset long, end_time timestamp, committed_to long, "
    "continued boolean"
)
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
    spark: SparkSession, parts: Sequence[Part], before: dict[str, Tables] | None = None
) -> dict[str, Tables]:
    """The tables of each cluster, all made in one go."""
    tables = history_tables(
        _records(spark, parts), _legs(spark, parts), lambda name: _open_rows(spark, name, before)
    )
    out: dict[str, Tables] = {part.cluster_id: {} for part in parts}
    for name, frame in tables.items():
        wanted = TABLES[name].columns
        found = frame.toArrow()
        assert found.schema.names == wanted.names, name
        for field in wanted:
            assert _plain(found.schema.field(field.name).type) == _plain(field.type), field
        for cluster in out.values():
            cluster[name] = []
        for row in found.to_pylist():
            out[row["cluster_id"]][name].append(row)
    return out


def _plain(kind: pa.DataType) -> str:
    return str(kind).replace("element", "item").replace(" not null", "")


def _open_rows(
    spark: SparkSession, name: str, before: dict[str, Tables] | None
) -> DataFrame | None:
    table = TABLES[name]
    if before is None:
        return None
    rows = [
        row
        for cluster in before.values()
        for row in cluster[name]
        if row["valid_to_offset"] is None
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, table.columns)) if rows else None


def _records(spark: SparkSession, parts: Iterable[Part]) -> DataFrame:
    schema = records_table().columns
    tables = []
    for part in parts:
        for rows in _rows(part):
            columns = []
            for field in schema:
                if field.name == "cluster_id":
                    found = pa.array([part.cluster_id] * rows.batch.num_rows)
                elif field.name == "type":
                    found = pa.array([rows.record_type] * rows.batch.num_rows)
                elif field.name in rows.batch.schema.names:
                    found = rows.batch.column(field.name).cast(field.type)
                else:
                    found = pa.nulls(rows.batch.num_rows, field.type)
                columns.append(found)
            tables.append(pa.Table.from_arrays(columns, schema=schema))
    whole = pa.concat_tables(tables).combine_chunks()
    return spark.createDataFrame(whole).repartition(2).cache()


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


def _legs(spark: SparkSession, parts: Iterable[Part]) -> DataFrame:
    rows = []
    for part in parts:
        legs = [leg for leg in part.history.legs if leg.first_offset < part.last]
        for number, leg in enumerate(legs):
            following = legs[number + 1] if number + 1 < len(legs) else None
            reached = min(leg.last_offset + 1, part.last)
            if following is not None and following.first_offset < part.done:
                continue
            rows.append(
                (
                    part.cluster_id,
                    number,
                    leg.first_offset,
                    _time(leg.first_time),
                    None if following is None else following.first_offset,
                    None if following is None else _time(following.first_time),
                    reached,
                    _time(leg.time_at(reached - 1)),
                    part.history.committed_below or 0,
                    part.done > 0 and leg.first_offset < part.done,
                )
            )
    return spark.createDataFrame(rows, _LEGS)


def _time(ms: int) -> datetime | None:
    return None if ms < 0 else datetime.fromtimestamp(ms / 1000, UTC)
