"""`records`: the log itself as a table, partitioned by cluster and record type.

A record's own fields are one struct column, named after its type: `partition_change` of a
PARTITION_CHANGE_RECORD. A type without fields (a NoOp, the end of a transaction) has none. The
files of a type hold only their own struct; the table has them all.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from kraftline.lake.tables import TIME, Table
from kraftline.records.metadata_arrow import metadata_schemas
from kraftline.schema.columns import META

UNREADABLE: Final = "UNREADABLE"  # the type of rows whose value nobody here can read

_COLUMNS: Final = (
    pa.field("cluster_id", pa.string()),
    pa.field("type", pa.string()),  # Kafka's name, of a control record too: LEADER_CHANGE
    pa.field("leg", pa.int32()),  # null: unbased
    pa.field("offset", pa.int64()),  # of a row of a snapshot: the last offset that it contains
    pa.field("index", pa.int32()),  # the order within an offset: 0, or the place in a snapshot
    pa.field("in_snapshot", pa.bool_()),
    pa.field("epoch", pa.int32()),
    pa.field("timestamp", TIME),
    pa.field("log_time", TIME),  # the highest timestamp of a batch of its leg so far
    pa.field("version", pa.int16()),
    pa.field("committed", pa.bool_()),
    pa.field("node", pa.int32()),  # whose copy it was read from
    pa.field("file", pa.string()),
    pa.field("position", pa.int64()),  # of the batch in the file
    pa.field("payload", pa.string()),  # JSON, where there is no struct for it
    pa.field("value", pa.binary()),  # where it cannot be read
)
PARTITIONED_BY: Final = ("cluster_id", "type")


def struct_name(record_type: str) -> str:
    """The column of a type: `topic` of TOPIC_RECORD."""
    return record_type.removesuffix("_RECORD").lower()


@cache
def struct_types() -> dict[str, pa.DataType]:
    """The struct of every type that has fields, by Kafka's name of the type."""
    found = {}
    for record_type, schema in metadata_schemas().items():
        fields = [pa.field(f.name, signed(f.type)) for f in schema if f.name not in META]
        if fields:
            found[record_type] = pa.struct(fields)
    return found


def signed(kind: pa.DataType) -> pa.DataType:
    """The same type without unsigned numbers, which neither Delta nor Spark has."""
    if pa.types.is_list(kind):
        return pa.list_(signed(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, signed(f.type)) for f in kind])
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[kind.bit_width]
    return kind


@cache
def file_schema(record_type: str) -> pa.Schema:
    """The columns of a file of one type: no partition columns, its own struct."""
    plain = [field for field in _COLUMNS if field.name not in PARTITIONED_BY]
    struct = struct_types().get(record_type)
    if struct is not None:
        plain.append(pa.field(struct_name(record_type), struct))
    return pa.schema(plain)


@cache
def records_table() -> Table:
    """The table with the structs of all types."""
    structs = [pa.field(struct_name(name), kind) for name, kind in struct_types().items()]
    return Table("records", pa.schema([*_COLUMNS, *structs]), ("offset", "index"), PARTITIONED_BY)
