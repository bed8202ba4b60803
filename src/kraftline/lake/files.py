"""Parquet files of a lake's tables: where they lie, how they are written, what Delta is told.

Tasks and the driver write them alike; nobody sees a file before a commit names it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Kept small enough for a question to skip most of a file by the least and the greatest of each.
ROW_GROUP: Final = 1 << 17
_LONGEST = 64  # of a text that is worth telling the least or the greatest of
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


class Added(msgspec.Struct, frozen=True):
    """One Parquet file, written and not yet seen; `path` is relative to the table's folder."""

    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    stats: str | None


def is_local(root: str) -> bool:
    return "://" not in root


def normal(root: str) -> str:
    """A folder as the rest of this package wants it: an absolute path, or a URL."""
    root = root.removeprefix("file://") if root.startswith("file:///") else root
    return os.path.abspath(root) if is_local(root) else root.rstrip("/")


def partition_folder(partition: Mapping[str, str | None]) -> str:
    """`cluster_id=A/state=open`, escaped as Hive and Spark do; `partition` in the table's order."""
    return "/".join(
        f"{name}={_NULL_FOLDER if value is None else quote(value, safe='')}"
        for name, value in partition.items()
    )


def new_path(partition: Mapping[str, str | None]) -> str:
    """A name that no other file has, below its partition's folder."""
    name = f"part-{uuid4().hex}.parquet"
    folder = partition_folder(partition)
    return f"{folder}/{name}" if folder else name


def write_file(folder: str, rows: pa.Table, partition: Mapping[str, str | None]) -> Added:
    """Write rows of one partition below a table's folder. The columns of the partition are in the
    path; they are dropped from the rows if they are there."""
    import pyarrow.parquet as pq  # whoever only reads has no use for it

    rows = rows.drop_columns([name for name in partition if name in rows.column_names])
    path = new_path(partition)
    with open_for_writing(f"{folder}/{path}") as out:
        with pq.ParquetWriter(out, rows.schema, compression="zstd") as writer:
            writer.write_table(rows, row_group_size=ROW_GROUP)
        size = out.tell()
    metadata = writer.writer.metadata
    return Added(path, size, rows.num_rows, dict(partition), stats_of(metadata))


def open_for_writing(path: str) -> pa.NativeFile:
    from pyarrow import fs

    if is_local(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return pa.OSFile(path, "wb")
    filesystem, inside = fs.FileSystem.from_uri(path)
    return filesystem.open_output_stream(inside)


def open_for_reading(path: str) -> pa.NativeFile:
    from pyarrow import fs

    if is_local(path):
        return pa.memory_map(path)
    filesystem, inside = fs.FileSystem.from_uri(path)
    return filesystem.open_input_file(inside)


def stats_of(metadata: pq.FileMetaData) -> str:
    """What Delta wants to know of a file: rows, and of each plain column the least, the greatest
    and how many are null."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).path
        if "." in name:
            continue
        found = [
            metadata.row_group(g).column(at).statistics for g in range(metadata.num_row_groups)
        ]
        if not all(each is not None and each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        known = [each for each in found if each.has_min_max]
        # A group of nulls alone has neither; any other that has none leaves the column unknown.
        if not known or len(known) < sum(each.num_values > 0 for each in found):
            continue
        low = _said(min(each.min for each in known))
        high = _said(max(each.max for each in known))
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    whole = {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return msgspec.json.encode(whole).decode()


def _said(value: Any) -> Any:
    """A bound as Delta writes it; None for kinds that nobody prunes by."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else None
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
