"""A piece of the log as rows of the table `records`, a batch of rows for each record type.

Secrets are blanked here, before anything is written: salts and keys of SCRAM are empty, values of
configs that nobody should see are `[hidden]` (a null is a config that was removed).
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftline.errors import BadData
from kraftline.lake.tables import TIME
from kraftline.metadata.words.values import HIDDEN, is_secret
from kraftline.records.batch import DefaultBatch
from kraftline.records.kernel import active as kernel
from kraftline.records.metadata_arrow import Aside, decode_metadata
from kraftline.records.metadata_reader import read_metadata
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.columns import META
from kraftline.schema.control.frame import ControlType, control_json, decode_control_key
from kraftline.schema.metadata.frame import decode_record, encode_record
from kraftline.spark.plan_types import Piece, Quarantined
from kraftline.spark.record_table import UNREADABLE, file_schema, struct_name, struct_types

_ROWS: Final = 4096
_SECRET_FIELDS: Final = ("salt", "stored_key", "server_key")
# Frame version 1, then the type: values of these hold secrets even if they cannot be read.
_SECRET_VALUES: Final = (b"\x01\x04", b"\x01\x0b")
# Milliseconds whose microseconds fit: what lies beyond is no time.
_LAST_MS: Final = (1 << 63) // 1000 - 1

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Rows(NamedTuple):
    """Rows of one type, with the columns of `file_schema`."""

    record_type: str
    batch: pa.RecordBatch


def record_rows(piece: Piece, data: bytes) -> Iterator[Rows | Quarantined]:
    """The rows of a piece, given its bytes; in the order of the log for each type."""
    reading = _Reading(piece, data)
    problems: list[BadData] = []
    for found in read_metadata(io.BytesIO(data), on_error=problems.append):
        for record_type, batch in found.tables.items():
            yield from reading.typed(record_type, batch)
        for aside in found.aside:
            yield from reading.aside(aside)
    for problem in problems:
        yield reading.quarantined("damage", problem.position, problem.offset, problem.reason)


class _Reading:
    def __init__(self, piece: Piece, data: bytes) -> None:
        self.piece = piece
        self.positions, self.times, self.epochs, self.stamps = _batches(data, piece.time)
        # Files of many types have the same name in each row: a dictionary writes it once.
        self.file = pa.array([piece.file])

    def typed(self, record_type: str, batch: pa.RecordBatch) -> Iterator[Rows]:
        """Rows with the struct of their type."""
        batch = self._wanted(batch)
        if not batch.num_rows:
            return
        positions = batch.column("batch_position").to_numpy()
        at = np.searchsorted(self.positions, positions, "right") - 1
        columns = self._columns(
            batch.column("offset").to_numpy(),
            batch.column("timestamp").to_numpy(),
            batch.column("batch_epoch"),
            self.times[at],
            positions,
        )
        columns["version"] = batch.column("version")
        kind = struct_types().get(record_type)
        if kind is not None:
            columns[struct_name(record_type)] = _struct(record_type, batch, kind)
        yield self._rows(record_type, columns, batch.num_rows)

    def aside(self, aside: Aside) -> Iterator[Rows | Quarantined]:
        """Rows of what the kernel left to others."""
        match aside.reason:
            case "control batch":
                yield from self._control(aside)
            case "other batch":
                pass  # a compressed one, whose records come by themselves
            case "bad batch":
                yield from self._unreadable(aside, "its records do not add up", aside.data)
            case _:
                yield from self._value(aside)

    def quarantined(
        self, kind: str, position: int | None, offset: int | None, reason: str
    ) -> Quarantined:
        start = None if position is None else position + self.piece.from_position
        return Quarantined(
            file=self.piece.file,
            kind=kind,
            from_position=start,
            to_position=None,
            from_offset=offset,
            to_offset=None if offset is None else offset + 1,
            reason=reason,
        )

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        piece = self.piece
        if piece.in_snapshot or not batch.num_rows:
            return batch
        offsets = batch.column("offset").to_numpy()
        first, last = np.searchsorted(offsets, [piece.from_offset, piece.to_offset])
        return batch.slice(first, last - first)

    def _columns(
        self,
        offsets: Numbers,
        stamps: Numbers,
        epochs: pa.Array,
        times: Numbers,
        positions: Numbers,
    ) -> dict[str, pa.Array]:
        piece, count = self.piece, len(offsets)
        columns = {
            "leg": _same(piece.leg, pa.int32(), count),
            "in_snapshot": _same(piece.in_snapshot, pa.bool_(), count),
            "epoch": epochs,
            "timestamp": _moments(stamps),
            "log_time": _moments(times),
            "node": _same(piece.node, pa.int32(), count),
            "file": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), self.file),
            "position": pa.array(positions + piece.from_position),
        }
        if piece.in_snapshot:
            columns["offset"] = _same(piece.from_offset, pa.int64(), count)
            columns["index"] = pa.array(offsets.astype(np.int32))
            columns["log_time"] = _moments(np.full(count, piece.time))
            columns["committed"] = _same(True, pa.bool_(), count)
        else:
            columns["offset"] = pa.array(offsets)
            columns["index"] = _same(0, pa.int32(), count)
            columns["committed"] = pa.array(offsets < piece.committed_to)
        return columns

    def _rows(self, record_type: str, columns: dict[str, pa.Array], count: int) -> Rows:
        fields = []
        arrays = []
        for field in file_schema(record_type):
            found = columns.get(field.name)
            arrays.append(pa.nulls(count, field.type) if found is None else found)
            fields.append(field if found is None else field.with_type(found.type))
        return Rows(record_type, pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))

    def _one(self, record_type: str, aside: Aside, offset: int, **more: object) -> Iterator[Rows]:
        """A row that has no struct."""
        piece = self.piece
        if not piece.in_snapshot and not piece.from_offset <= offset < piece.to_offset:
            return
        at = max(int(np.searchsorted(self.positions, aside.position, "right")) - 1, 0)
        columns = self._columns(
            np.array([offset]),
            self.stamps[at : at + 1],
            pa.array(self.epochs[at : at + 1], pa.int32()),
            self.times[at : at + 1],
            np.array([aside.position]),
        )
        schema = file_schema(record_type)
        for name, value in more.items():
            columns[name] = pa.array([value], schema.field(name).type)
        yield self._rows(record_type, columns, 1)

    def _control(self, aside: Aside) -> Iterator[Rows | Quarantined]:
        batch = DefaultBatch(memoryview(aside.data), 0, len(aside.data), aside.position)
        try:
            records = batch.records(check_crc=False)
        except BadData as error:
            yield from self._unreadable(aside, error.reason, aside.data)
            return
        for record in records:
            try:
                name, payload = _said(record)
            except BadData as error:
                yield from self._unreadable(aside, error.reason, record.value, record.offset)
                continue
            value = record.value if payload is None else None
            yield from self._one(name, aside, record.offset, payload=payload, value=value)

    def _value(self, aside: Aside) -> Iterator[Rows | Quarantined]:
        """A value that is not as Kafka writes it: mostly one that it would read all the same."""
        try:
            message, version = decode_record(aside.data)
        except BadData as error:
            secret = aside.data.startswith(_SECRET_VALUES)
            yield from self._unreadable(aside, error.reason, None if secret else aside.data)
            return
        at = max(int(np.searchsorted(self.positions, aside.position, "right")) - 1, 0)
        plain = Record(aside.offset, int(self.stamps[at]), None, encode_record(message, version))
        epoch = int(self.epochs[at])
        again = decode_metadata(
            build_batch([plain], partition_leader_epoch=epoch), file_position=aside.position
        )
        for record_type, batch in again.tables.items():
            yield from self.typed(record_type, batch)

    def _unreadable(
        self, aside: Aside, reason: str, value: bytes | None, offset: int | None = None
    ) -> Iterator[Rows | Quarantined]:
        place = aside.offset if offset is None else offset
        yield from self._one(UNREADABLE, aside, place, value=value)
        kind = "unknown" if aside.reason.startswith("unknown") else "unreadable"
        yield self.quarantined(kind, aside.position, place, f"a record cannot be read: {reason}")


def _batches(data: bytes, time: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Of every batch: its position, the log's time with it, its epoch, its own time."""
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    found = []
    at, why = 0, kernel.TABLE_FULL
    while why == kernel.TABLE_FULL:
        count, at, why = kernel.scan(data, at, len(data), 0, table)
        rows = np.frombuffer(table, np.int64).reshape(_ROWS, kernel.STRIDE)[:count]
        chosen = (kernel.POSITION, kernel.MAX_TIMESTAMP, kernel.LEADER_EPOCH)
        found.append(rows[:, chosen].copy())
    numbers = np.concatenate(found)
    stamps = numbers[:, 1]
    return numbers[:, 0], np.maximum.accumulate(np.maximum(stamps, time)), numbers[:, 2], stamps


def _same(value: object, kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def _moments(ms: Numbers) -> pa.Array:
    """Milliseconds as times; null where there is none."""
    none = (ms < 0) | (ms > _LAST_MS)
    if none.any():
        return pa.array(np.where(none, 0, ms) * 1000, mask=none).cast(TIME)
    return pa.array(ms * 1000).cast(TIME)


def _struct(record_type: str, batch: pa.RecordBatch, kind: pa.StructType) -> pa.Array:
    columns = {name: batch.column(name) for name in batch.schema.names if name not in META}
    if record_type == "CONFIG_RECORD":
        columns["value"] = _hidden(columns["name"], columns["value"])
    elif record_type == "USER_SCRAM_CREDENTIAL_RECORD":
        for name in _SECRET_FIELDS:
            columns[name] = pa.repeat(pa.scalar(b"", pa.binary()), batch.num_rows)
    parts = [columns[field.name].cast(field.type) for field in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind))


def _hidden(names: pa.Array, values: pa.Array) -> pa.Array:
    secrets = [name for name in pc.unique(names).to_pylist() if name and is_secret(name)]
    if not secrets:
        return values
    hide = pc.and_(pc.is_in(names, pa.array(secrets, names.type)), pc.is_valid(values))
    return pc.if_else(hide, HIDDEN, values)


def _said(record: Record) -> tuple[str, str | None]:
    """The type of a control record and its payload; None where the type is not known."""
    if record.key is None or record.value is None:
        raise BadData("a control record without key or value", offset=record.offset)
    kind = decode_control_key(record.key)
    if kind not in {each.value for each in ControlType}:
        return f"CONTROL_{kind}", None
    said: Any = control_json(kind, record.value)
    return ControlType(kind).name, msgspec.json.encode(said).decode()
