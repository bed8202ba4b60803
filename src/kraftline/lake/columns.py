"""Columns out of the engine, in plain types and without loading pandas.

pyarrow brings pandas along for `pa.table` and for datetimes, and that takes longer than most
questions.
"""

from __future__ import annotations

import pyarrow as pa


def rows_in(stream: object) -> pa.Table:
    """All rows of an Arrow stream. The engine has its own kind of text, which few others take."""
    rows = pa.RecordBatchReader.from_stream(stream).read_all()
    plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in rows.schema])
    return rows if plain == rows.schema else rows.cast(plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind


def micros(times: pa.ChunkedArray) -> list[int | None]:
    """Times as microseconds since 1970, whatever their unit."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[times.type.unit]
    values = (each for chunk in times.chunks for each in chunk.view(pa.int64()).to_pylist())
    if per_second == 10**6:
        return list(values)
    return [None if each is None else each * 10**6 // per_second for each in values]


def millis(times: pa.ChunkedArray) -> list[int | None]:
    """Times as milliseconds since 1970."""
    return [None if each is None else each // 1000 for each in micros(times)]


def is_time(field: pa.Field) -> bool:
    return bool(pa.types.is_timestamp(field.type))
