"""Rows of all tables as they come up, kept by column until there are enough to be written."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kraftline.lake.tables import CHANGES, CLOSED, OPEN, TABLES
from kraftline.metadata.words import Change
from kraftline.spark.history.moments import Leg
from kraftline.spark.history.out import TablesOut

Row: TypeAlias = dict[str, Any]

_ENOUGH: Final = 1 << 14


class Rows:
    """The rows of one cluster on their way to its tables."""

    def __init__(self, cluster_id: str, out: TablesOut) -> None:
        self._cluster_id, self._out = cluster_id, out
        self._waiting: dict[tuple[str, str | None], list[Row]] = {}

    def valid(
        self,
        table: str,
        row: Row,
        leg: Leg,
        start: tuple[int, int | None],
        end: tuple[int, int | None] | None,
    ) -> None:
        """A row of a history table, true from one offset and time to another, or to the end of its
        leg."""
        if end is None and leg.next_base_offset is not None:
            end = leg.next_base_offset, leg.next_base_time
        whole = {
            **row,
            "valid_from_offset": start[0],
            "valid_from_time": start[1],
            "valid_to_offset": None if end is None else end[0],
            "valid_to_time": None if end is None else end[1],
            "committed": leg.is_committed(start[0]),
        }
        self._add(table, OPEN if end is None else CLOSED, whole)

    def again(self, table: str, rows: pa.Table, leg: Leg) -> None:
        """Rows that were open and still are."""
        committed = pc.less(rows.column("valid_from_offset"), leg.committed_to or 0)
        at = rows.schema.get_field_index("committed")
        rows = rows.set_column(at, "committed", committed).cast(plain_schema(table))
        for batch in rows.combine_chunks().to_batches():
            self._out.write(table, self._cluster_id, OPEN, batch)

    def change(
        self,
        change: Change,
        leg: Leg,
        at: tuple[int, int | None],
        epoch: int | None,
        name: str | None = None,
    ) -> None:
        """A row of `changes`; bookkeeping is left out."""
        if change.minor:
            return
        row = {
            "offset": at[0],
            "time": at[1],
            "epoch": epoch,
            "kind": change.kind,
            "subject": change.subject,
            "topic": change.topic,
            "partition": change.partition,
            "broker": change.brokers[0] if change.brokers else None,
            "name": name,
            "before": text_of(change.before),
            "after": text_of(change.after),
            "cause": change.because,
            "text": change.text,
            "committed": leg.is_committed(at[0]),
        }
        self._add(CHANGES.name, None, row)

    def flush(self) -> None:
        for table, state in list(self._waiting):
            self._write(table, state)

    def _add(self, table: str, state: str | None, row: Row) -> None:
        waiting = self._waiting.setdefault((table, state), [])
        waiting.append(row)
        if len(waiting) >= _ENOUGH:
            self._write(table, state)

    def _write(self, table: str, state: str | None) -> None:
        rows = self._waiting.pop((table, state))
        schema = plain_schema(table)
        columns = [pa.array([row[f.name] for row in rows], f.type) for f in schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        self._out.write(table, self._cluster_id, state, batch)


def plain_schema(table: str) -> pa.Schema:
    """The columns of a table's files: without those that are folders."""
    found = TABLES[table]
    return pa.schema([f for f in found.columns if f.name not in found.partition_by])


def text_of(value: Any) -> str | None:
    """What was before or after, as text."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
