"""Where a task's rows go: files of any table of a lake, and word of them to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec
import pyarrow as pa
from msgspec import Struct

from kraftline.lake.files import Added
from kraftline.lake.tables import TABLES
from kraftline.spark.parquet_out import ParquetOut


class Wrote(Struct, frozen=True):
    table: str
    added: Added


class TablesOut:
    """Files of many tables below a lake's root; `stack` ends them."""

    def __init__(self, root: str, stack: ExitStack) -> None:
        self._root, self._stack = root, stack
        self._tables: dict[str, ParquetOut] = {}

    def write(self, table: str, cluster_id: str, state: str | None, batch: pa.RecordBatch) -> None:
        """Rows of one cluster, and of one state where the table has rows that open and close."""
        out = self._tables.get(table)
        if out is None:
            made = ParquetOut(f"{self._root}/{table}", TABLES[table].partition_by)
            out = self._tables[table] = self._stack.enter_context(made)
        out.write((cluster_id,) if state is None else (cluster_id, state), batch)

    def said(self) -> list[bytes]:
        """All files that were written, for `added_by_table`; to be asked when they have ended."""
        return [
            msgspec.json.encode(Wrote(table, added))
            for table, out in self._tables.items()
            for added in out.added
        ]


@contextmanager
def tables_out(root: str) -> Iterator[TablesOut]:
    with ExitStack() as stack:
        yield TablesOut(root, stack)


def added_by_table(said: Iterable[bytes]) -> dict[str, list[Added]]:
    found: dict[str, list[Added]] = {}
    for text in said:
        wrote = msgspec.json.decode(text, type=Wrote)
        found.setdefault(wrote.table, []).append(wrote.added)
    return found
