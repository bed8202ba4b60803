"""The columns of `kafka_segments`, and how a run of batches becomes exactly those that are asked.

A timestamp that a record does not have (-1), or that no calendar has, is null. What is null in
Kafka is null here; other fields that a format lacks are -1, as Kafka's clients show them.

`pyarrow.compute` is imported where rows are made: before any are, Spark starts a fresh Python for
each step of its planning, and there it would only take time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kraftline.records.arrow import COLUMNS, columns_of
from kraftline.records.runs import Run
from kraftline.spark.sources.options import BadOption
from kraftline.spark.sources.splits import Bounds, Piece

if TYPE_CHECKING:
    from kraftline.spark.sources.typed import Typed

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")
LATEST: Final = 253_402_300_799_999  # the last millisecond of the year 9999, in Spark as in Python

RECORD: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestamp_type", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            ),
        ),
        StructField("leader_epoch", IntegerType()),
        StructField("producer_id", LongType()),
        StructField("producer_epoch", ShortType()),
        StructField("sequence", IntegerType()),
        StructField("codec", StringType()),
        StructField("is_transactional", BooleanType()),
        StructField("is_control", BooleanType()),
        StructField("file", StringType()),
        StructField("position", LongType()),
    ]
)

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def checked(schema: StructType, offered: StructType) -> StructType:
    """The schema that a reader was given, if it is some of the columns that there are."""
    kinds = {field.name: field.dataType.simpleString() for field in offered}
    for field in schema:
        if field.name not in kinds:
            raise BadOption(f"there is no column {field.name}; there are {', '.join(kinds)}")
        if field.dataType.simpleString() != kinds[field.name]:
            raise BadOption(
                f"the column {field.name} is {kinds[field.name]}, "
                f"not {field.dataType.simpleString()}"
            )
    return schema


def arrow_schema(schema: StructType) -> pa.Schema:
    """What Spark takes for these columns: it compares types and what may be null exactly."""
    return pa.schema([_arrow_field(field) for field in schema])


def _arrow_field(field: StructField) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType), nullable=field.nullable)


def _arrow_type(kind: DataType) -> pa.DataType:
    if isinstance(kind, ArrayType):
        element = pa.field("element", _arrow_type(kind.elementType), nullable=kind.containsNull)
        return pa.list_(element)
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(field) for field in kind])
    return _SIMPLE[kind.simpleString()]


class Columns:
    """Makes record batches of a schema; one is used for all pieces of a task."""

    def __init__(self, schema: StructType, typed: Typed | None = None) -> None:
        self.schema = arrow_schema(schema)
        self._names = schema.fieldNames()
        self._typed = typed
        asked = set(self._names)
        if typed is not None:
            asked |= set(typed.needs(self._names))
        self._asked = [name for name in COLUMNS if name in asked]
        self._constants: dict[tuple[object, pa.DataType], pa.Array] = {}

    def batch(self, run: Run, piece: Piece) -> pa.RecordBatch:
        """The run's records within the piece's bounds."""
        bounds = piece.bounds
        needed = list(self._asked)
        if bounds != Bounds():
            needed += [name for name in ("offset", "timestamp") if name not in needed]
        # With no column at all there would be no rows to count.
        found = columns_of(run, needed or ["offset"])
        if bounds != Bounds():
            found = within(found, bounds)
        rows: dict[str, pa.Array] = dict(zip(found.schema.names, found.columns, strict=True))
        count = found.num_rows
        if self._typed is not None:
            rows |= self._typed.columns(rows, self._names)
        arrays = [self._column(field, rows, piece, count) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(
        self, field: pa.Field, rows: dict[str, pa.Array], piece: Piece, count: int
    ) -> pa.Array:
        match field.name:
            case "topic":
                return self._constant(piece.topic, field.type, count)
            case "partition":
                return self._constant(piece.partition, field.type, count)
            case "file":
                return self._constant(piece.path, field.type, count)
            case "timestamp":
                return timestamps(rows["timestamp"])
            case "timestamp_type":
                return self._named(rows["timestamp_type"], TIMESTAMP_TYPES, 1)
            case "codec":
                return self._named(rows["codec"], CODECS, 0)
            case "headers":
                return _headers(rows["headers"], field.type)
            case name:
                return rows[name]

    def _constant(self, value: object, kind: pa.DataType, count: int) -> pa.Array:
        """The same value over and over; made once for as many rows as were ever wanted."""
        kept = self._constants.get((value, kind))
        if kept is None or len(kept) < count:
            kept = pa.repeat(pa.scalar(value, kind), max(count, 1024))
            self._constants[value, kind] = kept
        return kept.slice(0, count)

    def _named(self, numbers: pa.Array, names: Sequence[str], shift: int) -> pa.Array:
        """Kafka's numbers as words; mostly all records of a run have the same."""
        import pyarrow.compute as pc

        if len(numbers) == 0:
            return pa.array([], pa.string())
        extremes = pc.min_max(numbers)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low == high:
            return self._constant(names[low + shift], pa.string(), len(numbers))
        shifted = pc.add(numbers, pa.scalar(shift, pa.int8()))
        return pc.take(pa.array(names, pa.string()), shifted)


def within(found: pa.RecordBatch, bounds: Bounds) -> pa.RecordBatch:
    """Without the records of the batches at the edges that are out of bounds."""
    import pyarrow.compute as pc

    offsets, times = found.column("offset"), found.column("timestamp")
    tests = []
    if bounds.start_offset:
        tests.append(pc.greater_equal(offsets, bounds.start_offset))
    if bounds.end_offset is not None:
        tests.append(pc.less(offsets, bounds.end_offset))
    if bounds.start_time is not None:
        tests.append(pc.greater_equal(times, bounds.start_time))
    if bounds.end_time is not None:
        # No time (-1) is not an early time.
        tests.append(pc.and_(pc.greater_equal(times, 0), pc.less(times, bounds.end_time)))
    for test in tests:
        if test.false_count:
            mask = tests[0]
            for other in tests[1:]:
                mask = pc.and_(mask, other)
            return found.filter(mask)
    return found


def timestamps(times: pa.Array) -> pa.Array:
    """Milliseconds as Spark's timestamps; null where there is none or no calendar has it."""
    import pyarrow.compute as pc

    if len(times) == 0:
        return pa.array([], _SIMPLE["timestamp"])
    extremes = pc.min_max(times)
    if extremes["min"].as_py() < 0 or extremes["max"].as_py() > LATEST:
        sound = pc.and_(pc.greater_equal(times, 0), pc.less_equal(times, LATEST))
        times = pc.if_else(sound, times, pa.scalar(None, pa.int64()))
    return pc.multiply(times, 1000).view(_SIMPLE["timestamp"])


def _headers(headers: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same memory under the type that is asked: only what may be null differs."""
    import pyarrow.compute as pc

    entries = headers.flatten()
    struct = kind.value_type
    fields = [struct.field(i) for i in range(struct.num_fields)]
    entries = pa.StructArray.from_arrays(
        [entries.field("key"), entries.field("value")], fields=fields
    )
    return pa.ListArray.from_arrays(
        pc.subtract(headers.offsets, headers.offsets[0]), entries, type=kind
    )
