"""Compiles declarations into column programs: how record bytes become columns without objects.

A program is a flat array of int64, run by `records._typed`: eight numbers an instruction, one run
of instructions per record type and version. All versions of a type share one set of columns, which
hold what the object would hold: a field that a version lacks has its default. Numbers that name
things are indexes of two tables: *counters* (rows, elements, bytes so far) and *buffers* (the parts
of the output: validity bits, offsets, data).
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Mapping

from msgspec import Struct

from kraftline.errors import Unsupported
from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import Message

STRIDE = 8


class Op(enum.IntEnum):
    """Instructions, with the operands that follow them."""

    END = 0
    FIXED = 1  # rows, -, data, width, 0 signed, 1 unsigned, 2 float
    BOOL = 2  # rows, -, bits
    UUID = 3  # rows, -, offsets, data
    COMPACT_BYTES = 4  # rows, validity or -1, offsets, data, byte counter, is text
    SHORT_BYTES = 5
    LONG_BYTES = 6
    COMPACT_ARRAY = 7  # rows, validity or -1, offsets, element counter, -, of structs, after
    ARRAY = 8
    NEXT = 9  # element counter, -, -, -, -, of structs, body
    TAGS = 10  # ..., TAG_END, after
    TAG_END = 11  # -, known tags, where their (tag, instruction) pairs are
    DEFAULT_FIXED = 12  # rows, -, data, width, -, value
    DEFAULT_BOOL = 13  # rows, -, bits, -, -, value
    DEFAULT_EMPTY = 14  # rows, validity or -1, offsets, -, counter, is valid
    DEFAULT_UUID = 15  # rows, -, offsets, data
    FIXED_ARRAY = 16  # rows, validity or -1, offsets, element counter, data, is unsigned
    JUMP = 17  # ..., target


class Part(enum.Enum):
    """What a buffer holds, and so how large it gets."""

    BITS = "bits"
    OFFSETS = "offsets"
    FIXED = "fixed"
    BYTES = "bytes"


class Buffer(Struct, frozen=True):
    """One part of the output; `counter` says how many bits, offsets, values or bytes."""

    part: Part
    counter: int
    width: int = 1

    def size(self, count: int) -> int:
        match self.part:
            case Part.BITS:
                return (count + 7) // 8
            case Part.OFFSETS:
                return 4 * (count + 1)
            case Part.FIXED | Part.BYTES:
                return self.width * count


class Column(Struct, frozen=True):
    """A column or, below a list, a part of its elements. Absent buffers are -1."""

    name: str
    wire: str
    rows: int
    validity: int = -1
    offsets: int = -1
    data: int = -1
    counter: int = -1
    children: tuple[Column, ...] = ()


class TypeColumns(Struct, frozen=True):
    """The columns of one record type; `meta` is the first of five buffers that every type has."""

    name: str
    rows: int
    meta: int
    columns: tuple[Column, ...]


class ColumnProgram(Struct, frozen=True):
    """All that `records._typed` needs, and the layout to wrap its output with.

    `names` is the JSON text in front of values; that of the instruction at `pc` starts at
    `name_at[pc // 4]` and is `name_at[pc // 4 + 1]` long. `defaults[pc // 4]` says whether a
    tagged field's default is a number (1: that in the next place), null (2) or empty (3).
    """

    code: array[int]
    names: bytes
    name_at: array[int]
    defaults: array[int]
    entries: array[int]
    types: int
    versions: int
    counters: int
    buffers: tuple[Buffer, ...]
    layouts: tuple[TypeColumns, ...]


# What every row has besides its fields; no field of any record has one of these names.
META = {
    "offset": "int64",
    "timestamp": "int64",
    "batch_epoch": "int32",
    "batch_position": "int64",
    "version": "int16",
}
WIDTHS = {
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
}


class _Layout:
    """Hands out counters and buffers while columns are laid out."""

    def __init__(self) -> None:
        self.counters = 0
        self.buffers: list[Buffer] = []

    def counter(self) -> int:
        self.counters += 1
        return self.counters - 1

    def buffer(self, part: Part, counter: int, width: int = 1) -> int:
        self.buffers.append(Buffer(part, counter, width))
        return len(self.buffers) - 1

    def columns(self, cls: type[Message], rows: int) -> tuple[Column, ...]:
        return tuple(self.column(field, rows) for field in fields(cls))

    def column(self, field: FieldSpec, rows: int) -> Column:
        validity = self.buffer(Part.BITS, rows) if field.nullable else -1
        if field.is_array:
            offsets = self.buffer(Part.OFFSETS, rows)
            elements = self.counter()
            if field.struct is None:
                children: tuple[Column, ...] = (self.value("item", field.wire, elements, -1),)
            else:
                children = self.columns(field.struct, elements)
            return Column(
                field.name, "list", rows, validity, offsets, counter=elements, children=children
            )
        if field.struct is not None:
            raise Unsupported(f"no columns for {field.name}: a struct outside an array")
        return self.value(field.name, field.wire, rows, validity)

    def value(self, name: str, wire: str, rows: int, validity: int) -> Column:
        if wire in WIDTHS:
            return Column(name, wire, rows, data=self.buffer(Part.FIXED, rows, WIDTHS[wire]))
        if wire == "bool":
            return Column(name, wire, rows, data=self.buffer(Part.BITS, rows))
        offsets = self.buffer(Part.OFFSETS, rows)
        if wire == "uuid":
            return Column(name, wire, rows, offsets=offsets, data=self.buffer(Part.FIXED, rows, 22))
        counter = self.counter()
        data = self.buffer(Part.BYTES, counter)
        return Column(name, wire, rows, validity, offsets, data, counter)


class _Assembler:
    """Writes instructions for one version of a message over columns already laid out."""

    def __init__(self) -> None:
        self.code: array[int] = array("q")
        self.names = bytearray()
        self.name_at: array[int] = array("q")
        self.defaults: array[int] = array("q")

    def emit(self, op: int, *operands: int, after: int = 0, name: str = "") -> int:
        at = len(self.code)
        row = [op, *operands]
        row += [0] * (STRIDE - 1 - len(row))
        self._append([*row, after], name.encode())
        return at

    def _append(self, row: list[int], name: bytes = b"") -> None:
        self.code.extend(row)
        self.name_at.extend((len(self.names), len(name)))
        self.defaults.extend((0, 0))
        self.names += name

    def message(self, cls: type[Message], version: int, columns: tuple[Column, ...]) -> None:
        """The fields in wire order, defaults for what is not there, then the tagged section."""
        tagged: list[tuple[int, FieldSpec, Column]] = []
        for field, column in zip(fields(cls), columns, strict=True):
            tag = field.tag_in(version)
            if version not in field.versions:
                self.default(field, column)
            elif tag is not None:
                self.default(field, column)
                tagged.append((tag, field, column))
            else:
                self.field(field, column, version)
        if not cls.SPEC.is_flexible(version):
            return
        tags = self.emit(Op.TAGS)
        targets = []
        jumps = []
        for tag, field, column in tagged:
            at = len(self.code)
            targets.append((tag, at))
            self.field(field, column, version)
            self.defaults[at // 4 : at // 4 + 2] = array("q", _default(field.default))
            jumps.append(self.emit(Op.JUMP))
        # The pairs stand in front of TAG_END as data that no path runs into.
        pairs = len(self.code)
        numbers = [number for pair in targets for number in pair]
        for at in range(0, len(numbers), STRIDE):
            row = numbers[at : at + STRIDE]
            self._append(row + [0] * (STRIDE - len(row)))
        end = self.emit(Op.TAG_END, 0, len(targets), pairs)
        for jump in jumps:
            self.code[jump + 7] = end
        self.code[tags + 6] = end
        self.code[tags + 7] = end + STRIDE

    def field(self, field: FieldSpec, column: Column, version: int) -> None:
        flexible = field.owner_is_flexible(version)
        name = f'"{field.json_name}":'
        if not field.is_array:
            self.value(column, flexible, name)
            return
        element = column.children[0]
        if field.struct is None and flexible and field.wire in ("int32", "uint32"):
            self.emit(
                Op.FIXED_ARRAY,
                column.rows,
                column.validity,
                column.offsets,
                column.counter,
                element.data,
                field.wire == "uint32",
                name=name,
            )
            return
        head = self.emit(
            Op.COMPACT_ARRAY if flexible else Op.ARRAY,
            column.rows,
            column.validity,
            column.offsets,
            column.counter,
            0,
            field.struct is not None,
            name=name,
        )
        body = len(self.code)
        if field.struct is None:
            self.value(element, flexible)
        else:
            self.message(field.struct, version, column.children)
        self.emit(Op.NEXT, column.counter, 0, 0, 0, 0, field.struct is not None, after=body)
        self.code[head + 7] = len(self.code)

    def value(self, column: Column, flexible: bool, name: str = "") -> None:
        wire = column.wire
        if wire in WIDTHS:
            form = 2 if wire == "float64" else 1 if wire.startswith("u") else 0
            self.emit(Op.FIXED, column.rows, -1, column.data, WIDTHS[wire], form, name=name)
        elif wire == "bool":
            self.emit(Op.BOOL, column.rows, -1, column.data, name=name)
        elif wire == "uuid":
            self.emit(Op.UUID, column.rows, -1, column.offsets, column.data, name=name)
        else:
            text = wire == "string"
            op = Op.COMPACT_BYTES if flexible else Op.SHORT_BYTES if text else Op.LONG_BYTES
            parts = (column.validity, column.offsets, column.data, column.counter, text)
            self.emit(op, column.rows, *parts, name=name)

    def default(self, field: FieldSpec, column: Column) -> None:
        """What the row holds unless the bytes say otherwise."""
        value = field.default
        if column.wire in WIDTHS:
            if not isinstance(value, int) and value != 0.0:
                raise Unsupported(f"no columns for {field.name}: its default is {value!r}")
            self.emit(
                Op.DEFAULT_FIXED,
                column.rows,
                -1,
                column.data,
                WIDTHS[column.wire],
                0,
                int(value),
            )
        elif column.wire == "bool":
            self.emit(Op.DEFAULT_BOOL, column.rows, -1, column.data, 0, 0, int(bool(value)))
        elif column.wire == "uuid":
            self.emit(Op.DEFAULT_UUID, column.rows, -1, column.offsets, column.data)
        elif value:
            raise Unsupported(f"no columns for {field.name}: its default is {value!r}")
        else:
            self.emit(
                Op.DEFAULT_EMPTY,
                column.rows,
                column.validity,
                column.offsets,
                0,
                column.counter,
                int(value is not None),
            )


def _default(value: object) -> tuple[int, int]:
    if isinstance(value, int):
        return 1, value
    return (2, 0) if value is None else (3, 0)


def compile_columns(messages: Mapping[str, type[Message]]) -> ColumnProgram:
    """One program for all versions of these record types, named as Kafka names them."""
    layout = _Layout()
    assembler = _Assembler()
    types = max(cls.SPEC.key for cls in messages.values()) + 1
    versions = max(cls.SPEC.versions.last for cls in messages.values()) + 1
    entries = array("q", [-1]) * (types * versions)
    layouts = []
    for name, cls in messages.items():
        rows = layout.counter()
        meta = len(layout.buffers)
        for wire in META.values():
            layout.buffer(Part.FIXED, rows, WIDTHS[wire])
        columns = layout.columns(cls, rows)
        layouts.append(TypeColumns(name, rows, meta, columns))
        for version in cls.SPEC.versions:
            head = f'{{"type":"{name}","version":{version},"data":{{'
            entries[cls.SPEC.key * versions + version] = len(assembler.code)
            assembler.emit(Op.END, rows, meta, after=1, name=head)
            assembler.message(cls, version, columns)
            assembler.emit(Op.END)
    return ColumnProgram(
        assembler.code,
        bytes(assembler.names),
        assembler.name_at,
        assembler.defaults,
        entries,
        types,
        versions,
        layout.counters,
        tuple(layout.buffers),
        tuple(layouts),
    )
