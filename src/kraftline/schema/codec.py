"""Reads and writes every declared message.

A declaration is compiled, per version and at first use, into the Python function one would write
by hand: straight calls of `Reader` and `Writer`, no look at the declaration afterwards. The
source is known to `linecache`, so tracebacks and debuggers show it; `source_of` returns it.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, TypeVar

from kraftline.errors import NotRepresentable, Unsupported
from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import Message, RawTag
from kraftline.schema.wire import KINDS, NO_SUCH_TAG, Reader, Writer

__all__ = [
    "FieldSpec",
    "ReaderSource",
    "check_version",
    "compile_functions",
    "decode",
    "encode",
    "fields",
    "reader",
    "smallest",
    "source_of",
    "writer",
]

M = TypeVar("M", bound=Message)

# What a Writer raises for values that are not what the declaration says.
_REFUSALS = "(TypeError, OverflowError, AttributeError, ValueError, StructError)"

_WIDTHS = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
_METHODS = {"bool": "boolean", "bytes": "blob", "records": "blob"}
_WHOLE_ARRAYS = ("int32", "int64", "uuid", "string")


def decode(cls: type[M], data: bytes, version: int) -> M:
    """The message in `data`, all of it: bytes left over are Corrupt."""
    r = Reader(data)
    message: M = reader(cls, version)(r)
    r.finish()
    return message


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message; NotRepresentable if this version has no place for a value."""
    w = Writer()
    writer(type(message), version)(w, message)
    return w.getvalue()


@cache
def reader(cls: type[M], version: int) -> Callable[[Reader], M]:
    """The function that reads one such message, of this version."""
    function: Callable[[Reader], M] = compile_functions(ReaderSource(cls, version), reader)
    return function


@cache
def writer(cls: type[M], version: int) -> Callable[[Writer, M], None]:
    """The function that writes one such message, in this version."""
    function: Callable[[Writer, M], None] = compile_functions(_WriterSource(cls, version), writer)
    return function


def check_version(cls: type[Message], version: int) -> None:
    """Unsupported, with the versions that are known, for any other version."""
    if version not in cls.SPEC.versions:
        raise Unsupported(
            f"{cls.__name__} version {version}: versions {cls.SPEC.versions} are known"
        )


def source_of(function: Callable[..., Any]) -> str:
    """The Python source of a compiled reader or writer."""
    return "".join(linecache.getlines(function.__code__.co_filename))


@cache
def smallest(cls: type[Message], version: int) -> int:
    """The least bytes that a message or struct of this version can take."""
    size = 1 if cls.SPEC.is_flexible(version) else 0
    for field in fields(cls):
        if version not in field.versions or field.tag is not None:
            continue
        compact = field.owner_is_flexible(version)
        if field.is_array:
            size += 1 if compact else 4
        elif field.struct is not None:
            size += 1 if version in field.nullable else smallest(field.struct, version)
        else:
            loose = 1 if compact else 2 if field.wire == "string" else 4
            size += _WIDTHS.get(field.wire, loose)
    return size


class Source:
    """Lines of a function in the making, and the names that they use."""

    verb = ""
    head = ""

    def __init__(self, cls: type[Message], version: int) -> None:
        check_version(cls, version)
        self.cls = cls
        self.version = version
        self.name = f"{self.verb}_{cls.__name__}_v{version}"
        self.lines = [f"def {self.name}({self.head}):"]
        self.names: dict[str, Any] = {}
        self.structs: list[type[Message]] = []
        self.flexible = cls.SPEC.is_flexible(version)
        self.present = [field for field in fields(cls) if version in field.versions]
        self.tagged = sorted(
            (field for field in self.present if field.tag is not None),
            key=lambda field: field.tag or 0,
        )
        self.body()

    def body(self) -> None:
        raise NotImplementedError

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, lines: list[str]) -> None:
        for text in lines:
            self.line(depth, text)

    def constant(self, field: FieldSpec) -> str:
        """The field's default as an expression."""
        if field.default in (None, (), "", b"") or isinstance(field.default, int):
            return repr(field.default)
        name = f"DEFAULT_{field.name}"
        self.names[name] = field.default
        return name

    def struct(self, cls: type[Message]) -> str:
        """The name of the function for a struct inside."""
        if cls not in self.structs:
            self.structs.append(cls)
        return f"{self.verb}_{cls.__name__}"

    def method(self, field: FieldSpec, nullable: bool = False) -> str:
        """The Reader's or Writer's method for the wire type; arrays apart."""
        if field.wire in _WIDTHS:
            return _METHODS.get(field.wire, field.wire)
        compact = "compact_" if field.owner_is_flexible(self.version) else ""
        return f"{compact}{'nullable_' if nullable else ''}{_METHODS.get(field.wire, field.wire)}"

    def array(self, field: FieldSpec, nullable: bool = False) -> str:
        compact = "compact_" if field.owner_is_flexible(self.version) else ""
        return f"{compact}{'nullable_' if nullable else ''}"


def compile_functions(source: Source, inner: Callable[..., Any]) -> Any:
    """The function that the lines define; `inner` makes those for the structs inside.

    Its text is left where debuggers look for it.
    """
    for cls in source.structs:
        source.names[f"{source.verb}_{cls.__name__}"] = inner(cls, source.version)
    text = "\n".join(source.lines) + "\n"
    file = f"<kraftline {source.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), source.names)
    return source.names[source.name]


class ReaderSource(Source):
    """A function from a Reader to a message."""

    verb = "read"
    head = "r"
    keeps_unknown = True

    def body(self) -> None:
        self.names.update({self.cls.__name__: self.cls, "RawTag": RawTag})
        gathered: list[tuple[str, int]] = []
        for field in self.present:
            if field.tag is None:
                code = self.code(field)
                if code is None:
                    self.read_gathered(gathered)
                    self.line(1, f"{field.name} = {self.value(field)}")
                else:
                    gathered.append((field.name, code))
        if self.flexible:
            gathered.append(("_tags", 4 * KINDS["uvarint"]))
        self.read_gathered(gathered)
        if self.flexible:
            self.tag_section()
        self.block(1, self.made())

    def code(self, field: FieldSpec) -> int | None:
        """What `Reader.fields` has to be told to read the field; None if it cannot."""
        if field.struct is not None or (field.is_array and field.wire not in _WHOLE_ARRAYS):
            return None
        kind = KINDS[_METHODS.get(field.wire, field.wire) + "_array" * field.is_array]
        compact = field.owner_is_flexible(self.version)
        return 4 * kind + compact + 2 * (self.version in field.nullable)

    def read_gathered(self, gathered: list[tuple[str, int]]) -> None:
        """One call for neighbouring fields: calls are what reading costs."""
        if gathered:
            names = ", ".join(name for name, _ in gathered)
            codes = bytes(code for _, code in gathered)
            self.line(1, f"{names}, = r.fields({codes!r})")
            gathered.clear()

    def tag_section(self) -> None:
        self.line(1, "if _tags == 0:")
        self.block(2, self.made(tags_at_default=True))
        codes = {field.tag or 0: self.code(field) for field in self.tagged}
        if None in codes.values():
            self.tag_loop()
        else:
            names = {field.tag or 0: field.name for field in self.tagged}
            tags = range(max(codes, default=-1) + 1)
            defaults = {field.tag or 0: field.default for field in self.tagged}
            self.names["DEFAULTS"] = tuple(defaults.get(tag) for tag in tags)
            plan = bytes(NO_SUCH_TAG if (code := codes.get(tag)) is None else code for tag in tags)
            found = [names.get(tag, "_") for tag in tags] + ["_unknown"]
            self.line(1, f"{', '.join(found)}, = r.tagged(_tags, {plan!r}, DEFAULTS)")
        if self.keeps_unknown:
            self.line(1, "if _unknown:")
            self.block(2, self.made(unknown=True))

    def tag_loop(self) -> None:
        """Tagged fields of which at least one is a struct."""
        for field in self.tagged:
            self.line(1, f"{field.name} = {self.constant(field)}")
        self.line(1, "_unknown = []")
        self.line(1, "while _tags:")
        self.line(2, "_tag = r.uvarint()")
        self.line(2, "_end = r.tag_end()")
        word = "if"
        for field in self.tagged:
            self.line(2, f"{word} _tag == {field.tag}:")
            self.line(3, f"{field.name} = {self.value(field)}")
            word = "elif"
        self.line(2, "else:")
        self.line(3, "_unknown.append((_tag, r.raw(_end - r.pos)))")
        self.line(2, "r.tag_done(_end)")
        self.line(2, "_tags -= 1")

    def made(self, tags_at_default: bool = False, unknown: bool = False) -> list[str]:
        """The last lines: fields that are not there, or only tagged, have their defaults."""
        there = {
            field.name for field in self.present if not (tags_at_default and field.tag is not None)
        }
        declared = fields(self.cls)
        values = [f.name if f.name in there else self.constant(f) for f in declared]
        while values and declared[len(values) - 1].name not in there:
            values.pop()
        if unknown:
            values.append("unknown_tags=tuple([RawTag(*_pair) for _pair in _unknown])")
        return [f"return {self.cls.__name__}({', '.join(values)})"]

    def sequence(self, items: str) -> str:
        return f"tuple([{items}])"

    def whole_array(self, call: str, nullable: bool) -> str:
        return call

    def value(self, field: FieldSpec) -> str:
        nullable = self.version in field.nullable
        if field.is_array:
            return self.array_value(field, nullable)
        if field.struct is None:
            return f"r.{self.method(field, nullable)}()"
        value = f"{self.struct(field.struct)}(r)"
        if not nullable:
            return value
        null = "r.int8() < 0" if field.tag is None else "r.uvarint() == 0"
        return f"None if {null} else {value}"

    def array_value(self, field: FieldSpec, nullable: bool) -> str:
        kind = self.array(field, nullable)
        if field.wire in _WHOLE_ARRAYS:
            return self.whole_array(f"r.{kind}{field.wire}_array()", nullable)
        if field.struct is None:
            one, least = f"r.{self.method(field)}()", _WIDTHS.get(field.wire, 1)
        else:
            one = f"{self.struct(field.struct)}(r)"
            least = max(1, smallest(field.struct, self.version))
        count = f"r.{kind}array_length({least})"
        if not nullable:
            return self.sequence(f"{one} for _ in range({count})")
        items = self.sequence(f"{one} for _ in range(_n)")
        return f"None if (_n := {count}) < 0 else {items}"


class _WriterSource(Source):
    verb = "write"
    head = "w, m"

    def body(self) -> None:
        from struct import error as struct_error

        self.names.update(StructError=struct_error, refuse=_refuse, absent=_absent)
        self.line(1, "try:")
        for field in fields(self.cls):
            if self.version not in field.versions:
                self.not_written(field)
            elif field.tag is None:
                self.value(2, field, f"m.{field.name}")
        if self.flexible:
            self.tag_section()
        else:
            self.line(2, "if m.unknown_tags:")
            self.line(3, f"absent(m, 'unknown_tags', {self.version})")
        self.line(1, f"except {_REFUSALS} as error:")
        self.line(2, f"refuse(m, {self.version}, error)")

    def differs(self, field: FieldSpec, value: str) -> str:
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {self.constant(field)}"

    def not_written(self, field: FieldSpec) -> None:
        if not field.ignorable:
            self.line(2, f"if {self.differs(field, f'm.{field.name}')}:")
            self.line(3, f"absent(m, {field.name!r}, {self.version})")

    def tag_section(self) -> None:
        self.line(2, "_unknown = m.unknown_tags")
        self.line(2, "_count = len(_unknown)")
        for field in self.tagged:
            self.line(2, f"{field.name} = m.{field.name}")
            self.line(2, f"if {self.differs(field, field.name)}:")
            self.line(3, "_count += 1")
        self.line(2, "w.uvarint(_count)")
        self.line(2, "if _count == 0:")
        self.line(3, "return")
        self.line(2, "_at = 0")
        for field in self.tagged:
            self.line(2, "if _unknown:")
            self.line(3, f"_at = w.raw_tags(_unknown, _at, {field.tag})")
            self.line(2, f"if {self.differs(field, field.name)}:")
            self.line(3, f"_start = w.begin_tag({field.tag})")
            self.value(3, field, field.name)
            self.line(3, "w.end_tag(_start)")
        self.line(2, "if _unknown:")
        self.line(3, "w.raw_tags(_unknown, _at, -1)")

    def value(self, depth: int, field: FieldSpec, value: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            self.array_value(depth, field, value, nullable)
        elif field.struct is None:
            self.line(depth, f"w.{self.method(field, nullable)}({value})")
        else:
            write = self.struct(field.struct)
            if nullable:
                null, there = ("int8(-1)", "int8(1)")
                if field.tag is not None:
                    null, there = ("uvarint(0)", "uvarint(1)")
                self.line(depth, f"if {value} is None:")
                self.line(depth + 1, f"w.{null}")
                self.line(depth, "else:")
                depth += 1
                self.line(depth, f"w.{there}")
            self.line(depth, f"{write}(w, {value})")

    def array_value(self, depth: int, field: FieldSpec, value: str, nullable: bool) -> None:
        kind = self.array(field)
        if nullable:
            self.line(depth, f"if {value} is None:")
            self.line(depth + 1, f"w.{kind}array_length(-1)")
            self.line(depth, "else:")
            depth += 1
        if field.wire in _WHOLE_ARRAYS:
            self.line(depth, f"w.{kind}{field.wire}_array({value})")
            return
        self.line(depth, f"w.{kind}array_length(len({value}))")
        self.line(depth, f"for _item in {value}:")
        if field.struct is None:
            self.line(depth + 1, f"w.{self.method(field)}(_item)")
        else:
            self.line(depth + 1, f"{self.struct(field.struct)}(w, _item)")


def _absent(message: Message, name: str, version: int) -> NoReturn:
    raise NotRepresentable(
        f"{type(message).__name__} version {version} has no {name}: "
        f"{getattr(message, name)!r} would be lost"
    )


def _refuse(message: Message, version: int, error: Exception) -> NoReturn:
    cls = type(message)
    if isinstance(message, Message) and version in cls.SPEC.versions:
        for field in fields(cls):
            value = getattr(message, field.name)
            if value is None and version in field.versions and version not in field.nullable:
                error = TypeError(f"{field.name} cannot be null")
                break
    raise NotRepresentable(f"{cls.__name__} version {version}: {error}") from error
