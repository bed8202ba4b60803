"""What a report is made from: the lake's tables by name, each as pyarrow has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kraftline.lake.tables import TABLES

Tables: TypeAlias = Mapping[str, pa.Table]

NEEDED = (
    "brokers",
    "changes",
    "configs",
    "coverage",
    "group_offsets",
    "health",
    "partitions",
    "quarantine",
    "topic_sizes",
    "topics",
)


def columns_of(name: str) -> list[str]:
    """Those columns that a report reads: wide ones of large tables stay on disk."""
    return _ONLY.get(name, list(TABLES[name].columns.names))


_SPAN = ["valid_from_offset", "valid_from_time", "valid_to_time"]
_ONLY = {
    "partitions": ["topic", "partition", "leader", *_SPAN],
    "topics": ["topic", *_SPAN],
    "brokers": [
        "broker",
        "incarnation_id",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        *_SPAN,
    ],
}


def typed(name: str, rows: pa.Table) -> pa.Table:
    """Rows with the types of a table's columns: an engine may have its own for texts."""
    own = TABLES[name].columns
    return rows.cast(pa.schema([own.field(column) for column in rows.column_names]))


def micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as whole microseconds."""
    return pc.cast(pc.cast(column, pa.timestamp("us", tz="UTC")), pa.int64())
