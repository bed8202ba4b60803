"""Any DataFrame into a table of the lake: tasks write Parquet, the driver hears of the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftline.lake.files import Added
from kraftline.lake.tables import Table
from kraftline.spark.parquet_out import ParquetOut
from kraftline.spark.tasks import in_words
from kraftline.spark.workers import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SAID: Final = "said binary"
Values: TypeAlias = tuple[str | None, ...]
SchemaOf: TypeAlias = Callable[[Values], pa.Schema]


def write_rows(
    frame: DataFrame, table: Table, folder: str, schema_of: SchemaOf | None = None
) -> list[Added]:
    """Write the rows below the table's folder, a file or a few for each task and partition.

    Columns are found by name and cast to the table's; `schema_of` names fewer of them for the
    files of a partition.
    """
    plain = pa.schema([f for f in table.columns if f.name not in table.partition_by])
    columns, partition_by = table.columns.names, table.partition_by

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ParquetOut(folder, partition_by) as out:
            for batch in batches:
                for values, rows in _by_partition(batch, partition_by):
                    out.write(values, _cast(rows, schema_of(values) if schema_of else plain))
        said = [msgspec.json.encode(added) for added in out.added]
        yield pa.RecordBatch.from_arrays([pa.array(said, pa.binary())], ["said"])
        settle()

    with in_words(folder):
        said = frame.select(*columns).mapInArrow(write, _SAID).toArrow()
    return [msgspec.json.decode(text, type=Added) for text in said.column(0).to_pylist()]


def _by_partition(
    batch: pa.RecordBatch, partition_by: tuple[str, ...]
) -> Iterator[tuple[Values, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    codes = np.zeros(batch.num_rows, np.int64)
    distinct: list[list[str | None]] = []
    for name in partition_by:
        encoded = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        codes = codes * len(values) + encoded.indices.to_numpy()
        distinct.append(values)
    for code in np.unique(codes).tolist():
        rows = batch if (codes == code).all() else batch.filter(pa.array(codes == code))
        values = []
        for known in reversed(distinct):
            code, at = divmod(code, len(known))
            values.append(known[at])
        yield tuple(reversed(values)), rows


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
