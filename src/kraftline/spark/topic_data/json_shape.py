"""Whether the JSON of a record fits a struct: Spark takes what it knows of a text and leaves the
rest, a field that it was not told of or what follows an object, without a word."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from pyspark.sql.types import ArrayType, DataType, StructType

# Fields by name, or what elements of a list are; None takes anything.
Shape: TypeAlias = "dict[str, Shape] | list[Shape] | None"


def shape_of(kind: DataType) -> Shape:
    if isinstance(kind, StructType):
        return {field.name: shape_of(field.dataType) for field in kind}
    if isinstance(kind, ArrayType):
        return [shape_of(kind.elementType)]
    return None


def alike(shape: Shape) -> tuple[str, str] | None:
    """Two fields beside each other whose names differ in nothing but case."""
    if isinstance(shape, list):
        return alike(shape[0])
    seen: dict[str, str] = {}
    for name, below in (shape or {}).items():
        if name.lower() in seen:
            return seen[name.lower()], name
        seen[name.lower()] = name
        if (found := alike(below)) is not None:
            return found
    return None


def decoded(text: str | bytes) -> object:
    """ValueError where this is not JSON, all of it."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def unfit(text: str | None, shape: Shape) -> str | None:
    """Why a text is not JSON that fits; None where it does."""
    if text is None:
        return None
    try:
        value = decoded(text)
    except ValueError:
        return "not JSON"
    if not isinstance(value, dict | None):
        return "not a JSON object"
    unknown = _unknown(value, shape)
    return None if unknown is None else f"has a field that was not inferred: {unknown!r}"


def _unknown(value: object, shape: Shape) -> str | None:
    """The first field with something in it that the shape does not have."""
    if isinstance(value, dict) and isinstance(shape, dict):
        for name, content in value.items():
            if name not in shape:
                if content not in (None, {}, []):
                    return str(name)
                continue
            below = shape[name]
            if below is not None and (found := _unknown(content, below)) is not None:
                return f"{name}.{found}"
    elif isinstance(value, list) and isinstance(shape, list):
        for each in value:
            if (found := _unknown(each, shape[0])) is not None:
                return found
    return None
