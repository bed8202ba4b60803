"""Batches of a metadata log or snapshot as rows of `kraft_metadata`, in the order of the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from kraftline.errors import BadData
from kraftline.lake.tables import TIME
from kraftline.metadata.words.values import HIDDEN, is_secret
from kraftline.records.batch import DefaultBatch
from kraftline.records.metadata_lines import MetadataLines
from kraftline.schema.metadata.frame import record_json
from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.plan_types import Piece, Quarantined
from kraftline.spark.record_rows import Rows, record_rows
from kraftline.spark.record_table import struct_name, struct_types

COLUMNS: Final = (
    pa.field("cluster_id", pa.string()),
    pa.field("node", pa.int32()),
    pa.field("offset", pa.int64()),  # of a row of a snapshot: the last offset that it contains
    pa.field("index", pa.int32()),  # the order within an offset: 0, or the place in a snapshot
    pa.field("epoch", pa.int32()),
    pa.field("timestamp", TIME),
    pa.field("type", pa.string()),
    pa.field("version", pa.int16()),
    pa.field("in_snapshot", pa.bool_()),
    pa.field("snapshot", pa.string()),  # its name: end offset and epoch
    pa.field("file", pa.string()),
    pa.field("position", pa.int64()),
    pa.field("payload", pa.string()),  # JSON, as Kafka's own tools print it; secrets are hidden
    pa.field("value", pa.binary()),  # where it cannot be read
)
_LINE: Final = re.compile(
    rb'^\d+,"offset":(\d+),.*?"headers":\[\],'
    rb'"payload":\{"type":"\w+","version":\d+,"data":(.*)\}\}$',
    re.MULTILINE,
)
_SCRAM: Final = "USER_SCRAM_CREDENTIAL_RECORD"
_CONFIG: Final = "CONFIG_RECORD"
_EVERYTHING: Final = 1 << 62


def schema_of(structs: Sequence[str], *, payload: bool) -> pa.Schema:
    plain = [field for field in COLUMNS if payload or field.name != "payload"]
    kinds = struct_types()
    return pa.schema([*plain, *(pa.field(struct_name(each), kinds[each]) for each in structs)])


class MetadataRows:
    """Makes record batches with the columns of a schema; only what it names is made."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def of(
        self, data: bytes, file: InputFile, position: int, first: int, end: int | None
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """Rows of batches that begin at a position of a file, with offsets in `first` to `end`."""
        in_snapshot = file.kind is InputKind.SNAPSHOT
        piece = Piece(
            cluster_id="",
            leg=None,
            file=file.path,
            node=file.node,
            in_snapshot=in_snapshot,
            from_position=position,
            to_position=position + len(data),
            from_offset=max(file.offset - 1, 0) if in_snapshot else first,
            to_offset=_EVERYTHING if end is None else end,
            epoch=file.epoch,
            time=-1,
            committed_to=0,
        )
        payloads = _Payloads(data) if "payload" in self._schema.names else None
        made: list[pa.RecordBatch] = []
        for found in record_rows(piece, data):
            if isinstance(found, Rows):
                made.append(self._batch(found, file, payloads))
            else:
                yield found
        if made:
            rows = pa.Table.from_batches(made).combine_chunks()
            order = [("offset", "ascending"), ("index", "ascending")]
            ordered = rows.sort_by(order) if len(made) > 1 else rows
            yield from ordered.select(self._schema.names).cast(self._schema).to_batches()

    def _batch(self, rows: Rows, file: InputFile, payloads: _Payloads | None) -> pa.RecordBatch:
        record_type, batch = rows
        count = batch.num_rows
        columns: dict[str, pa.Array] = {name: batch.column(name) for name in batch.schema.names}
        columns["cluster_id"] = _same(file.cluster_id, count)
        columns["type"] = _same(record_type, count)
        columns["file"] = columns["file"].cast(pa.string())
        columns["snapshot"] = _same(_snapshot_name(file), count)
        typed = batch.column("version").null_count == 0
        if payloads is not None and typed:
            # Rows of snapshots all have one offset; their place tells them apart.
            where = "index" if file.kind is InputKind.SNAPSHOT else "offset"
            texts = payloads.at(batch.column(where).to_numpy())
            columns["payload"] = pa.array(_hidden(record_type, texts), pa.string())
        # What the rows are put in order by is there even if nobody asked for it.
        wanted = {field.name: field for field in (*self._schema, *COLUMNS[2:4])}
        fields = list(wanted.values())
        arrays = [
            columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type)
            for f in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _same(value: str | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)


def _snapshot_name(file: InputFile) -> str | None:
    if file.kind is not InputKind.SNAPSHOT:
        return None
    return file.path.partition("::")[0].rpartition("/")[2].removesuffix(".checkpoint")


class _Payloads:
    """The payloads of the records in a run of batches, by offset."""

    def __init__(self, data: bytes) -> None:
        offsets: list[int] = []
        self._texts: list[bytes] = []
        lines, at = MetadataLines(b""), 0
        while at < len(data):
            text, end = lines.write(data, at, len(data), 0)
            found = _LINE.findall(bytes(text))
            if end == at:
                size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
                found = _one_by_one(data, at, size)
                end = at + size
            offsets += (int(offset) for offset, _ in found)
            self._texts += (said for _, said in found)
            at = end
        self._offsets = np.array(offsets, np.int64)

    def at(self, offsets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[bytes | None]:
        places = np.searchsorted(self._offsets, offsets).tolist()
        count = len(self._texts)
        return [
            self._texts[place] if place < count and self._offsets[place] == offset else None
            for place, offset in zip(places, offsets.tolist(), strict=True)
        ]


def _one_by_one(data: bytes, at: int, size: int) -> list[tuple[int, bytes]]:
    """The records of a batch that is out of the ordinary."""
    batch = DefaultBatch(memoryview(data), at, size, at)
    if batch.is_control:
        return []
    found = []
    try:
        for record in batch.records(check_crc=False):
            if record.value is not None:
                said: Any = record_json(record.value)
                found.append((record.offset, msgspec.json.encode(said["data"])))
    except BadData:
        return found  # told of by whoever makes the rows
    return found


def _hidden(record_type: str, texts: list[bytes | None]) -> list[bytes | None]:
    if record_type not in (_SCRAM, _CONFIG):
        return texts
    return [None if text is None else _without_secrets(record_type, text) for text in texts]


def _without_secrets(record_type: str, text: bytes) -> bytes:
    data = msgspec.json.decode(text)
    if record_type == _SCRAM:
        data |= dict.fromkeys(("salt", "storedKey", "serverKey"), HIDDEN)
    elif is_secret(data["name"]) and data["value"] is not None:
        data["value"] = HIDDEN
    return msgspec.json.encode(data)
