"""Metadata batches to Arrow, one table per record type, without passing through objects.

The kernel does the plain cases; whatever it puts aside (an unknown type, a malformed value, a
control or compressed batch) comes back as `Aside` rows beside the tables: nothing is dropped.
"""

from __future__ import annotations

import threading
from array import array
from functools import cache

import pyarrow as pa
from msgspec import Struct

from kraftline import kernels
from kraftline.records.metadata_program import metadata_program
from kraftline.schema.columns import META, Buffer, Column, Part

_TYPES = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "uuid": pa.string(),
    "bytes": pa.binary(),
}
_kernel = kernels.load("kraftline.records._typed")
_ALIGN = 64
_MAX_ASIDE = 1 << 16
_DEPTH = 16


class Aside(Struct, frozen=True):
    """What the kernel left to the object codec: a batch, or one record's value.

    `position` is that of the batch in its file; `data` the bytes of the batch or value, or of what
    is left of a batch whose records do not add up ("bad batch").
    """

    reason: str
    position: int
    offset: int
    data: bytes


class MetadataColumns(Struct, frozen=True):
    """The rows of a run of batches by Kafka's type name, what was put aside, and where it ends."""

    tables: dict[str, pa.RecordBatch]
    aside: tuple[Aside, ...]
    end: int


@cache
def arrow_type(column: Column) -> pa.DataType:
    if column.wire != "list":
        return _TYPES[column.wire]
    if len(column.children) == 1 and column.children[0].name == "item":
        return pa.list_(arrow_type(column.children[0]))
    return pa.list_(pa.struct([pa.field(c.name, arrow_type(c)) for c in column.children]))


@cache
def metadata_schemas() -> dict[str, pa.Schema]:
    """The Arrow schema of every record type; `offset` to `version` come first in each."""
    meta = [pa.field(name, _TYPES[wire]) for name, wire in META.items()]
    return {
        layout.name: pa.schema([*meta, *(pa.field(c.name, arrow_type(c)) for c in layout.columns)])
        for layout in metadata_program().layouts
    }


def decode_metadata(
    buffer: bytes | memoryview, start: int = 0, end: int | None = None, file_position: int = 0
) -> MetadataColumns:
    """Decode the whole batches in `buffer[start:end]`, whose checksums were checked before.

    `end` of the answer is below the given one when a batch is not complete, or when so much was
    put aside that the call must be repeated from there. `file_position` is where `start` stands
    in the file.
    """
    program = metadata_program()
    stop = len(buffer) if end is None else end
    aside, stack = _scratch.aside, _scratch.stack
    counters = array("q", [0]) * program.counters
    bases = array("q", [0]) * len(program.buffers)
    shared = (program.code, program.entries, program.types, program.versions, counters, bases)
    reached, put = _kernel.metadata_columns(
        buffer, start, stop, file_position, *shared, bytearray(1), aside, stack, -1
    )
    arena = _allocate(program.buffers, counters, bases)
    counters[:] = array("q", [0]) * program.counters
    _kernel.metadata_columns(
        buffer,
        start,
        reached,
        file_position,
        *shared,
        memoryview(arena).cast("B"),
        aside,
        stack,
        put,
    )
    tables = {}
    for layout in program.layouts:
        rows = counters[layout.rows]
        if not rows:
            continue
        wrap = _Wrapper(arena, program.buffers, counters, bases)
        meta = [
            pa.Array.from_buffers(_TYPES[wire], rows, [None, wrap.buffer(layout.meta + i)])
            for i, wire in enumerate(META.values())
        ]
        columns = [wrap.column(column) for column in layout.columns]
        tables[layout.name] = pa.RecordBatch.from_arrays(
            [*meta, *columns], schema=metadata_schemas()[layout.name]
        )
    rows_aside = []
    for at in range(0, put * _kernel.ASIDE_WIDTH, _kernel.ASIDE_WIDTH):
        reason, position, offset, first, last = aside[at : at + _kernel.ASIDE_WIDTH]
        data = bytes(buffer[first:last])
        rows_aside.append(Aside(_kernel.REASONS[reason], position, offset, data))
    return MetadataColumns(tables, tuple(rows_aside), reached)


class _Scratch(threading.local):
    """Room for what is put aside, kept: touching fresh memory costs more than decoding."""

    def __init__(self) -> None:
        self.aside = array("q", [0]) * (_kernel.ASIDE_WIDTH * _MAX_ASIDE)
        self.stack = array("q", [0]) * (4 * _DEPTH)


_scratch = _Scratch()


def _allocate(buffers: tuple[Buffer, ...], counters: array[int], bases: array[int]) -> pa.Buffer:
    """One piece of memory for all buffers; sets `bases`, and zeroes what is not all written."""
    total = 0
    for index, buffer in enumerate(buffers):
        bases[index] = total
        size = buffer.size(counters[buffer.counter])
        total += (size + _ALIGN - 1) // _ALIGN * _ALIGN
    arena = pa.allocate_buffer(max(total, 1))
    view = _view(arena)
    for index, buffer in enumerate(buffers):
        count = counters[buffer.counter]
        if buffer.part is Part.BITS and count:
            size = buffer.size(count)
            view[bases[index] : bases[index] + size] = bytes(size)
        elif buffer.part is Part.OFFSETS:
            view[bases[index] : bases[index] + 4] = bytes(4)
    return arena


def _view(arena: pa.Buffer) -> memoryview:
    return memoryview(arena).cast("B")


class _Wrapper:
    """Arrow arrays over parts of the arena."""

    def __init__(
        self,
        arena: pa.Buffer,
        buffers: tuple[Buffer, ...],
        counters: array[int],
        bases: array[int],
    ) -> None:
        self.arena, self.buffers, self.counters, self.bases = arena, buffers, counters, bases

    def buffer(self, index: int) -> pa.Buffer | None:
        if index < 0:
            return None
        buffer = self.buffers[index]
        return self.arena.slice(self.bases[index], buffer.size(self.counters[buffer.counter]))

    def column(self, column: Column) -> pa.Array:
        rows = self.counters[column.rows]
        kind = arrow_type(column)
        validity = self.buffer(column.validity)
        if column.wire != "list":
            parts = [validity, self.buffer(column.data)]
            if column.offsets >= 0:
                parts.insert(1, self.buffer(column.offsets))
            return pa.Array.from_buffers(kind, rows, parts)
        if pa.types.is_struct(kind.value_type):
            elements = pa.Array.from_buffers(
                kind.value_type,
                self.counters[column.counter],
                [None],
                children=[self.column(child) for child in column.children],
            )
        else:
            elements = self.column(column.children[0])
        return pa.Array.from_buffers(
            kind, rows, [validity, self.buffer(column.offsets)], children=[elements]
        )
