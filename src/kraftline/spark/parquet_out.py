"""Parquet files that a task writes into a table's folder, one at a time for each partition."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kraftline.lake.files import ROW_GROUP, Added, new_path, open_for_writing, stats_of

# A file is ended when it has so many rows: what a reader takes in a few tasks.
_FILE_ROWS: Final = 8 * ROW_GROUP
# What is encoded at a time: more than Parquet's 1,024 takes a sixth less time.
_BATCH_ROWS: Final = 1 << 14
# Arrays below this are copied: they would keep alive the memory that they were cut from.
_SMALL: Final = ROW_GROUP // 8


class _Open:
    """A file that is being written, and rows that wait for more of them."""

    def __init__(self, folder: str, partition: Mapping[str, str | None], schema: pa.Schema) -> None:
        self.partition, self.schema = partition, schema
        self.path = new_path(partition)
        self.out = open_for_writing(f"{folder}/{self.path}")
        self.writer = pq.ParquetWriter(
            self.out,
            schema,
            compression="zstd",
            compression_level=1,
            store_schema=False,
            write_batch_size=_BATCH_ROWS,
            # Nobody skips by what is the least in a list.
            write_statistics=[f.name for f in schema if not pa.types.is_nested(f.type)],
        )
        self.waiting: list[pa.RecordBatch] = []
        self.waiting_rows = self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows < _SMALL:
            batch = batch.take(pa.array(np.arange(batch.num_rows)))
        self.waiting.append(batch)
        self.waiting_rows += batch.num_rows
        if self.waiting_rows >= ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            rows = pa.Table.from_batches(self.waiting, self.schema)
            self.writer.write_table(rows, row_group_size=2 * ROW_GROUP)
            self.rows += self.waiting_rows
            self.waiting, self.waiting_rows = [], 0

    def close(self) -> Added:
        self.flush()
        self.writer.close()
        size = self.out.tell()
        self.out.close()
        stats = stats_of(self.writer.writer.metadata)
        return Added(self.path, size, self.rows, dict(self.partition), stats)


class ParquetOut:
    """Takes batches of rows for partitions; `added` are the files that are complete.

    A context manager: leaving it ends all files. A file never holds rows of two partitions.
    """

    def __init__(self, folder: str, partition_by: tuple[str, ...]) -> None:
        self._folder, self._partition_by = folder, partition_by
        self._open: dict[tuple[str | None, ...], _Open] = {}
        self.added: list[Added] = []

    def write(self, values: tuple[str | None, ...], batch: pa.RecordBatch) -> None:
        """Rows of the partition with these values, without the partition's columns."""
        if not batch.num_rows:
            return
        file = self._open.get(values)
        if file is None:
            partition = dict(zip(self._partition_by, values, strict=True))
            file = self._open[values] = _Open(self._folder, partition, batch.schema)
        file.add(batch)
        if file.rows >= _FILE_ROWS:
            self.added.append(self._open.pop(values).close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._open.values():
            added = file.close()
            if kind is None:
                self.added.append(added)
        self._open.clear()
