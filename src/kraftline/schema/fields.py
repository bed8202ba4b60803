"""What a declaration says about its fields, read once from the class and then kept."""

from __future__ import annotations

import sys
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from kraftline.schema import types
from kraftline.schema.types import NO_VERSIONS, Message, Versions


class FieldSpec(msgspec.Struct, frozen=True):
    """One field. For an array, `wire` and `struct` speak of its elements."""

    name: str
    json_name: str
    wire: str  # "int32", "string", ..., or "struct"
    is_array: bool
    struct: type[Message] | None
    versions: Versions
    nullable: Versions
    tag: int | None
    ignorable: bool
    flexible: Versions
    default: Any

    def tag_in(self, version: int) -> int | None:
        """The field's tag in this version, None where it is not tagged."""
        return self.tag if version in self.versions else None

    def owner_is_flexible(self, version: int) -> bool:
        """Whether this version writes the field in compact form."""
        return version in self.flexible


def camel_case(name: str) -> str:
    """`leader_epoch` as Kafka's JSON has it: `leaderEpoch`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def fields(cls: type[Message]) -> tuple[FieldSpec, ...]:
    """The fields of a message or struct in the order of the wire."""
    scope = vars(sys.modules[cls.__module__])
    defaults = dict(zip(cls.__struct_fields__[::-1], cls.__struct_defaults__[::-1], strict=False))
    return tuple(
        _field(cls, name, eval(text, scope) if isinstance(text, str) else text, defaults[name])
        for name, text in cls.__annotations__.items()
        if name in defaults
    )


def _field(cls: type[Message], name: str, declared: Any, default: Any) -> FieldSpec:
    spec = cls.SPEC
    plain, marks = _unwrap(declared)
    versions = spec.versions & _range(marks, types.V, spec.versions)
    nullable = NO_VERSIONS
    if get_origin(plain) in (Union, UnionType):
        (inner,) = (arm for arm in get_args(plain) if arm is not type(None))
        plain, more = _unwrap(inner)
        marks += more
        nullable = versions & _range(marks, types.Nullable, versions)
    is_array = get_origin(plain) is tuple
    if is_array:
        plain, marks_inside = _unwrap(get_args(plain)[0])
        marks += marks_inside
    tag = _mark(marks, types.Tag)
    named = _mark(marks, types.Name)
    is_struct = isinstance(plain, type) and issubclass(plain, Message)
    return FieldSpec(
        name=name,
        json_name=camel_case(name) if named is None else named.json,
        wire="struct" if is_struct else "uuid" if plain is types.Uuid else _wire(marks),
        is_array=is_array,
        struct=plain if is_struct else None,
        versions=versions,
        nullable=nullable,
        tag=None if tag is None else tag.number,
        ignorable=types.IGNORABLE in marks,
        flexible=_range(marks, types.Flexible, spec.flexible),
        default=default,
    )


def _unwrap(declared: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(declared) is Annotated:
        plain, *marks = get_args(declared)
        return plain, tuple(marks)
    return declared, ()


def _mark(marks: tuple[Any, ...], kind: type) -> Any:
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def _range(marks: tuple[Any, ...], kind: type, otherwise: Versions) -> Versions:
    mark = _mark(marks, kind)
    return otherwise if mark is None else Versions.parse(mark.versions)


def _wire(marks: tuple[Any, ...]) -> str:
    name: str = _mark(marks, types.Wire).name
    return name
