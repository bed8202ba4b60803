"""Many small files become one: every build adds a file or two to each partition of closed rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kraftline.lake.delta import File
from kraftline.lake.files import Added, is_local, write_file
from kraftline.lake.tables import TABLES

_SMALL: Final = 16 << 20  # files as large as this stay as they are
_MOST: Final = 32 << 20  # written at once: it is all in memory


def too_many(files: Iterable[File], max_small: int) -> list[list[File]]:
    """Groups of files to merge: of a partition with more than `max_small` small ones, the smallest,
    as many as make one of a fair size."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[File]] = defaultdict(list)
    for file in files:
        if file.size < _SMALL:
            partitions[tuple(sorted(file.partition.items()))].append(file)
    groups = []
    for small in partitions.values():
        if len(small) <= max_small:
            continue
        group: list[File] = []
        total = 0
        for file in sorted(small, key=lambda each: each.size):
            total += file.size
            if total > _MOST:
                break
            group.append(file)
        groups.append(group)
    return groups


def merge(folder: str, table: str, group: Sequence[File], order: Sequence[str] = ()) -> Added:
    """The rows of some files of one partition in a new file, in order."""
    parts = [_read(f"{folder}/{file.path}") for file in group]
    rows = pa.concat_tables(parts, promote_options="default")
    by = [name for name in order or _order(table) if name in rows.column_names]
    if by:
        rows = rows.sort_by([(name, "ascending") for name in by])
    return write_file(folder, rows, group[0].partition)


def _order(table: str) -> tuple[str, ...]:
    """That of a table's entities in time, or that of the log."""
    return (*TABLES[table].keys, "valid_from_offset") if table in TABLES else ("offset", "index")


def _read(path: str) -> pa.Table:
    if is_local(path):
        with pq.ParquetFile(path) as file:
            return file.read()
    from pyarrow import fs

    filesystem, inside = fs.FileSystem.from_uri(path)
    with filesystem.open_input_file(inside) as source, pq.ParquetFile(source) as file:
        return file.read()
