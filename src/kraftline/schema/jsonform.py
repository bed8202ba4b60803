"""Messages in Kafka's own JSON form: what its tools print and its converters read.

camelCase names in the order of the declaration, only fields that the version has, tagged fields
only when they are not the default; uuids as 22 characters, bytes and records as base64. Unknown
tags have no place in it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar

from kraftline.errors import Corrupt, NotRepresentable
from kraftline.schema.codec import ReaderSource, check_version, compile_functions
from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.schema.wire import Reader

Json: TypeAlias = dict[str, Any]
M = TypeVar("M", bound=Message)

_INTEGERS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}


def to_json(message: Message, version: int) -> Json:
    """A message as this version's JSON; NotRepresentable if a value has no place there."""
    cls = type(message)
    check_version(cls, version)
    out: Json = {}
    for field in fields(cls):
        value = getattr(message, field.name)
        if version not in field.versions:
            if not field.ignorable and value != field.default:
                raise NotRepresentable(
                    f"{cls.__name__} version {version} has no {field.name}: {value!r} would be lost"
                )
        elif field.tag is None or value != field.default:
            out[field.json_name] = json_value(field, value, version)
    return out


def json_value(field: FieldSpec, value: Any, version: int) -> Any:
    """A field's value as JSON has it."""
    if value is None:
        return None
    if field.is_array:
        return [_one_value(field, item, version) for item in value]
    return _one_value(field, value, version)


def _one_value(field: FieldSpec, value: Any, version: int) -> Any:
    if field.struct is not None:
        return to_json(value, version)
    if field.wire == "uuid":
        return str(Uuid(value))
    if field.wire in ("bytes", "records"):
        return b64encode(value).decode("ascii")
    return value


def from_json(cls: type[M], obj: object, version: int) -> M:
    """The message that Kafka's JSON says; Corrupt, with the path, where it does not fit."""
    check_version(cls, version)
    return _message(cls, obj, version, cls.__name__)


def _message(cls: type[M], obj: object, version: int, path: str) -> M:
    if not isinstance(obj, dict):
        raise Corrupt(f"{path}: an object is wanted, not {_kind(obj)}")
    values: dict[str, Any] = {}
    known = set()
    for field in fields(cls):
        if version not in field.versions:
            continue
        known.add(field.json_name)
        if field.json_name in obj:
            where = f"{path}.{field.json_name}"
            values[field.name] = _field(field, obj[field.json_name], version, where)
        elif field.tag is None:
            raise Corrupt(f"{path}: {field.json_name} is missing (version {version} has it)")
    extra = sorted(map(str, obj.keys() - known))
    if extra:
        raise Corrupt(f"{path}: version {version} does not know {', '.join(extra)}")
    return cls(**values)


def _field(field: FieldSpec, value: Any, version: int, path: str) -> Any:
    if value is None:
        if version not in field.nullable:
            raise Corrupt(f"{path}: null is not allowed in version {version}")
        return None
    if not field.is_array:
        return _one(field, value, version, path)
    if not isinstance(value, list | tuple):
        raise Corrupt(f"{path}: an array is wanted, not {_kind(value)}")
    return tuple(_one(field, item, version, f"{path}[{i}]") for i, item in enumerate(value))


def _one(field: FieldSpec, value: Any, version: int, path: str) -> Any:
    wire = field.wire
    if field.struct is not None:
        return _message(field.struct, value, version, path)
    if wire in _INTEGERS:
        lowest, highest = _INTEGERS[wire]
        if type(value) is int and lowest <= value <= highest:
            return value
        raise Corrupt(f"{path}: {wire} is wanted, not {_kind(value)}")
    if wire == "bool":
        if isinstance(value, bool):
            return value
        raise Corrupt(f"{path}: true or false is wanted, not {_kind(value)}")
    if wire == "float64":
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        raise Corrupt(f"{path}: a number is wanted, not {_kind(value)}")
    if not isinstance(value, str):
        raise Corrupt(f"{path}: a string is wanted, not {_kind(value)}")
    if wire == "string":
        return value
    try:
        return Uuid.parse(value) if wire == "uuid" else b64decode(value, validate=True)
    except (ValueError, Base64Error):
        what = "a uuid" if wire == "uuid" else "base64"
        raise Corrupt(f"{path}: {what} is wanted, not {_kind(value)}") from None


def _kind(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@cache
def json_reader(cls: type[Message], version: int) -> Callable[[Reader], Json]:
    """The function that reads one such message straight into its JSON, with no object between."""
    function: Callable[[Reader], Json] = compile_functions(_JsonSource(cls, version), json_reader)
    return function


def _base64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode("ascii")


_NOT_JSON = ("uuid", "bytes", "records")  # values of these are put differently


class _JsonSource(ReaderSource):
    """Reads as the reader of objects does, but into values of JSON and a dict of them."""

    verb = "json"
    keeps_unknown = False

    def made(self, tags_at_default: bool = False, unknown: bool = False) -> list[str]:
        pairs = []
        lines: list[str] = []
        for field in self.present:
            if field.tag is None:
                pairs.append(f"{field.json_name!r}: {field.name}")
            elif not tags_at_default:
                if not lines:
                    lines.append(f"_out = {{{', '.join(pairs)}}}")
                elif pairs:
                    lines.append(f"_out.update({{{', '.join(pairs)}}})")
                pairs = []
                lines.append(f"if {field.name} != {self.constant(field)}:")
                lines.append(f"    _out[{field.json_name!r}] = {field.name}")
        if not lines:
            return [f"return {{{', '.join(pairs)}}}"]
        if pairs:
            lines.append(f"_out.update({{{', '.join(pairs)}}})")
        return [*lines, "return _out"]

    def constant(self, field: FieldSpec) -> str:
        name = f"DEFAULT_{field.name}"
        self.names[name] = json_value(field, field.default, self.version)
        return name

    def code(self, field: FieldSpec) -> int | None:
        return None if field.is_array or field.wire in _NOT_JSON else super().code(field)

    def value(self, field: FieldSpec) -> str:
        value = super().value(field)
        if field.struct is not None:
            return value
        if field.wire == "uuid" and not field.is_array:
            return "r.uuid_text()"
        if field.wire in ("bytes", "records"):
            self.names["base64"] = _base64
            return f"base64({value})"
        return value

    def sequence(self, items: str) -> str:
        return f"[{items}]"

    def whole_array(self, call: str, nullable: bool) -> str:
        if call.endswith("uuid_array()"):
            return call.replace("uuid_array", "uuid_texts")
        if nullable:
            return f"None if (_a := {call}) is None else [*_a]"
        return f"[*{call}]"
