"""Partitions of all clusters brought together by topic, in one exchange.

Every row has the same shape: records of partitions, rows that were open after the last build, and
the lives of their topics, which come before the partitions. Rows travel as whole chunks of Arrow, a
row of Spark each, so that Spark has little to do but to hand them on.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from kraftline.lake.files import open_for_reading
from kraftline.metadata.partition import NO_LEADER_CHANGE
from kraftline.spark.history.moments import BEFORE_ALL, UNIT_BITS, UNIT_MASK
from kraftline.spark.history.placed import CHANGE, HEALTH, WHOLE
from kraftline.spark.record_table import struct_name

PARTITION_TYPES: Final = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
BEFORE_PARTITIONS: Final = -1
CHUNKS: Final = pa.schema([pa.field("bucket", pa.int32()), pa.field("rows", pa.binary())])
_INTS: Final = pa.list_(pa.int32())
ROWS: Final = pa.schema(
    {
        "cluster_id": pa.string(),
        "topic_id": pa.string(),
        "leg": pa.int32(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "index": pa.int32(),
        "how": pa.int8(),
        "time": pa.int64(),
        "epoch": pa.int32(),
        "unit": pa.int64(),
        "leader": pa.int32(),
        "recovery": pa.int8(),
        "leader_epoch": pa.int32(),
        "partition_epoch": pa.int32(),
        "replicas": _INTS,
        "isr": _INTS,
        "adding_replicas": _INTS,
        "removing_replicas": _INTS,
        "elr": _INTS,
        "last_known_elr": _INTS,
        "directories": pa.list_(pa.string()),
        "kind": pa.string(),
        "detail": pa.string(),
        "payload": pa.binary(),
    }
)
_MOMENT: Final = ("leg", "offset", "index", "in_snapshot", "epoch", "log_time", "file", "position")
_READ_ROWS: Final = 1 << 18
_REPEATED: Final = {
    "partitions": ["topic", "topic_id", "directories.list.element"],
    "health": ["topic", "topic_id", "kind", "detail"],
}
_ORDER: Final = ("index", "offset", "partition", "leg")


class RecordFile(Struct, frozen=True):
    """A file of the table `records`, of one type. Of a file that an earlier build wrote only the
    records of one leg from an offset on are wanted."""

    path: str  # below the table's folder
    cluster_id: str
    type: str
    rows: int
    leg: int | None = None
    from_offset: int | None = None

    def wanted(self, rows: pa.Table) -> pa.Array:
        if self.leg is None:
            return pc.is_valid(rows.column("leg"))
        here = pc.and_(
            pc.equal(rows.column("leg"), self.leg),
            pc.greater_equal(rows.column("offset"), self.from_offset),
        )
        return pc.and_(here, pc.invert(rows.column("in_snapshot")))


class OpenFile(Struct, frozen=True):
    """A file with rows of a history table that were open after the last build. `leg` is the one
    that goes on, of which what is before `committed_to` is committed."""

    path: str  # below the table's folder
    cluster_id: str
    table: str
    size: int = 0  # in bytes
    leg: int | None = None
    committed_to: int = 0


def buckets(rows: pa.Table, count: int) -> Iterator[pa.RecordBatch]:
    """Rows as CHUNKS, all of a topic in the same bucket of so many."""
    names = pc.binary_join_element_wise(rows.column("cluster_id"), rows.column("topic_id"), "/")
    coded = names.combine_chunks().dictionary_encode()
    of_name = [zlib.crc32(name.encode()) % count for name in coded.dictionary.to_pylist()]
    of_row = np.array(of_name, np.int32)[coded.indices.to_numpy()]
    order = np.argsort(of_row, kind="stable")
    rows, of_row = rows.take(pa.array(order)), of_row[order]
    ends = np.append(np.flatnonzero(np.diff(of_row, prepend=-1)), len(of_row))
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        chunk = as_chunk(rows.slice(start, end - start))
        yield pa.RecordBatch.from_pydict({"bucket": [of_row[start]], "rows": [chunk]}, CHUNKS)


def one_each(chunks: pa.Table) -> pa.Table:
    """CHUNKS put together, one for each bucket."""
    of_bucket: dict[int, list[pa.Buffer]] = {}
    for bucket, chunk in zip(*chunks.columns, strict=True):
        of_bucket.setdefault(bucket.as_py(), []).append(chunk.as_buffer())
    together = [b"".join(each) for each in of_bucket.values()]
    return pa.Table.from_pydict({"bucket": list(of_bucket), "rows": together}, CHUNKS)


def as_chunk(rows: pa.Table) -> bytes:
    """Rows on their way between a task and the driver."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as out:
        out.write_table(rows.combine_chunks())
    found: bytes = sink.getvalue().to_pybytes()
    return found


def rows_of(chunks: Iterable[bytes]) -> pa.Table:
    """Their rows; a chunk may be several in a row."""
    found = []
    for chunk in chunks:
        with pa.BufferReader(chunk) as source:
            while source.tell() < len(chunk):
                found.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(found)


def in_order(chunks: Sequence[bytes]) -> pa.Table:
    """The rows of a bucket, topic by topic and there by leg, partition and place in the log."""
    rows = rows_of(chunks)
    coded = (
        rows.column(name).combine_chunks().dictionary_encode().indices
        for name in ("topic_id", "cluster_id")
    )
    keys = [*(rows.column(name) for name in _ORDER), *coded]
    return rows.take(pa.array(np.lexsort([key.to_numpy() for key in keys]))).combine_chunks()


def records_said(root: str, file: RecordFile) -> Iterator[pa.Table]:
    """The rows of a file of one of PARTITION_TYPES."""
    struct = struct_name(file.type)
    with (
        open_for_reading(f"{root}/{file.path}") as source,
        pq.ParquetFile(source, read_dictionary=["file"]) as opened,
    ):
        for batch in opened.iter_batches(_READ_ROWS, columns=[*_MOMENT, struct]):
            rows = pa.Table.from_batches([batch])
            rows = rows.filter(file.wanted(rows)).combine_chunks()
            if rows.num_rows:
                yield _records(rows, rows.column(struct).combine_chunks(), file)


def _records(rows: pa.Table, said: pa.StructArray, file: RecordFile) -> pa.Table:
    def field(name: str) -> pa.Array:
        return said.field(said.type.get_field_index(name))

    is_whole = file.type == PARTITION_TYPES[0]
    columns = {
        "leg": rows.column("leg"),
        "offset": rows.column("offset"),
        "index": rows.column("index"),
        "epoch": rows.column("epoch"),
        "time": rows.column("log_time").cast(pa.int64()),
        "unit": _units(rows),
        "how": WHOLE if is_whole else CHANGE,
        "topic_id": field("topic_id"),
        "partition": field("partition_id"),
        "leader": field("leader"),
        "recovery": field("leader_recovery_state"),
        "replicas": field("replicas"),
        "isr": field("isr"),
    }
    others = {
        "adding_replicas": "adding_replicas",
        "removing_replicas": "removing_replicas",
        "elr": "eligible_leader_replicas",
        "last_known_elr": "last_known_elr",
        "directories": "directories",
    }
    for name, of in others.items():
        # A Partition record says all there is, if only that there is none.
        columns[name] = _or_empty(field(of)) if is_whole else field(of)
    if is_whole:
        columns |= {name: field(name) for name in ("leader_epoch", "partition_epoch")}
    else:
        columns["leader"] = _unless(columns["leader"], NO_LEADER_CHANGE)
        columns["recovery"] = _unless(columns["recovery"], -1)
    return shaped({"cluster_id": file.cluster_id, **columns}, rows.num_rows)


def _units(rows: pa.Table) -> pa.Array:
    files = rows.column("file").combine_chunks()
    heads = [zlib.crc32(name.encode()) & UNIT_MASK for name in files.dictionary.to_pylist()]
    of_file = np.array(heads, np.int64)[files.indices.to_numpy()] << UNIT_BITS
    units = of_file ^ rows.column("position").to_numpy()
    return pa.array(units, mask=rows.column("in_snapshot").to_numpy())


def _unless(column: pa.Array, nothing: int) -> pa.Array:
    """Null where a number says that there is none."""
    return pc.if_else(pc.equal(column, nothing), pa.scalar(None, column.type), column)


def _or_empty(column: pa.ListArray) -> pa.Array:
    """Nothing in place of null, which has no length either."""
    return pa.ListArray.from_arrays(column.offsets, column.values)


def opened_rows(root: str, file: OpenFile) -> Iterator[pa.Table]:
    """Rows of `partitions`, or of partitions in `health`, that were open, as the file has them;
    texts that repeat as dictionaries, which makes them quicker to read, to choose and to write."""
    with (
        open_for_reading(f"{root}/{file.path}") as source,
        pq.ParquetFile(source, read_dictionary=_REPEATED[file.table]) as opened,
    ):
        for group in range(opened.num_row_groups):  # more at once have no dictionary in common
            rows = opened.read_row_group(group, use_threads=False)  # tasks keep all cores busy
            if file.table == "health":
                rows = rows.filter(pc.is_valid(rows.column("partition")))
            if rows.num_rows:
                yield rows


def opened_said(rows: pa.Table, file: OpenFile) -> pa.Table:
    """Such rows in the shape that travels."""
    is_health = file.table == "health"
    kept = ("kind", "detail") if is_health else [name for name in _STATE if name != "recovery"]
    columns = {name: rows.column(name) for name in (*kept, "topic_id", "partition")}
    if not is_health:
        columns["recovery"] = rows.column("leader_recovery_state")
    return shaped(
        {
            **columns,
            "cluster_id": file.cluster_id,
            "leg": file.leg,
            "offset": rows.column("valid_from_offset"),
            "index": BEFORE_ALL,
            "how": HEALTH if is_health else WHOLE,
            "time": rows.column("valid_from_time").cast(pa.int64()),
        },
        rows.num_rows,
    )


_STATE: Final = ROWS.names[ROWS.names.index("leader") : ROWS.names.index("kind")]


def shaped(columns: Mapping[str, Any], count: int) -> pa.Table:
    """Columns as ROWS: one value may stand for all, and what is not given is null."""
    found = []
    for field in ROWS:
        column = columns.get(field.name)
        if column is None:
            column = pa.nulls(count, field.type)
        elif isinstance(column, (int, str)):
            column = pa.repeat(pa.scalar(column, field.type), count)
        found.append(column.cast(field.type))
    return pa.Table.from_arrays(found, schema=ROWS)
