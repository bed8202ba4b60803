"""The second opinion: `kio`, an independent implementation, writes and reads the same bytes."""

from __future__ import annotations

import dataclasses
import datetime
import re
import uuid
from io import BytesIO
from typing import Any

import pytest
from kio.index import UnknownEntity, load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import LoadableEntityType
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kraftline.schema.codec import decode, encode
from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import ZERO, Message
from tests.schema.instances import Random
from tests.schema.messages import message_classes

ENDINGS: dict[str, LoadableEntityType] = {
    "Request": EntityType.request,
    "Response": EntityType.response,
    "Header": EntityType.header,
}
KNOWN_ERRORS = {code.value for code in ErrorCode}


def kio_class(name: str, version: int) -> type[Any] | None:
    """kio's class for one version of a message; None where kio has none."""
    kind: LoadableEntityType = EntityType.data
    for ending, other in ENDINGS.items():
        kind = other if name.endswith(ending) else kind
    stem = name if kind in (EntityType.data, EntityType.header) else re.sub("Re[a-z]+$", "", name)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()
    try:
        found: type[Any] = load_entity_schema(snake, version, kind)
    except UnknownEntity:
        return None
    return found


def as_kio(message: Message, version: int, cls: type[Any]) -> Any:
    """The same message as kio has it: by position, because kio renames some fields."""
    present = [field for field in fields(type(message)) if version in field.versions]
    theirs = dataclasses.fields(cls)
    assert len(present) == len(theirs)
    return cls(
        **{
            their.name: value(field, getattr(message, field.name), version, their)
            for field, their in zip(present, theirs, strict=True)
        }
    )


def value(field: FieldSpec, ours: Any, version: int, their: dataclasses.Field[Any]) -> Any:
    if ours is None:
        return None
    if field.is_array:
        return tuple(one(field, item, version, their) for item in ours)
    return one(field, ours, version, their)


def one(field: FieldSpec, ours: Any, version: int, their: dataclasses.Field[Any]) -> Any:
    kind = their.metadata.get("kafka_type")
    if field.struct is not None:
        return as_kio(ours, version, struct_class(their.type))
    if kind == "error_code":
        return ErrorCode(ours if ours in KNOWN_ERRORS else 0)
    if kind in ("timedelta_i32", "timedelta_i64"):
        return datetime.timedelta(milliseconds=ours)
    if kind == "datetime_i64":
        return datetime.datetime.fromtimestamp(ours / 1000, tz=datetime.UTC)
    if field.wire == "uuid":
        # kio has None for the zero uuid.
        return None if ours == ZERO else uuid.UUID(bytes=bytes(ours))
    return ours


def struct_class(declared: Any) -> type[Any]:
    """The dataclass inside `X`, `X | None`, `tuple[X, ...]` and so on."""
    if dataclasses.is_dataclass(declared):
        return declared if isinstance(declared, type) else type(declared)
    for part in getattr(declared, "__args__", ()):
        if part is not type(None) and part is not ...:
            return struct_class(part)
    raise AssertionError(declared)


@pytest.mark.parametrize("name", sorted(message_classes()))
def test_kio_agrees(name: str) -> None:
    cls = message_classes()[name]
    for version in cls.SPEC.versions:
        theirs = kio_class(name, version)
        if theirs is None:
            continue
        rng = Random((name, version), tame=True)
        for _ in range(3):
            message = rng.message(cls, version)
            buffer = BytesIO()
            entity_writer(theirs)(buffer, as_kio(message, version, theirs))
            data = encode(message, version)
            assert data == buffer.getvalue(), (version, message)
            assert decode(cls, data, version) == message
            read, size = entity_reader(theirs)(data, 0)
            assert size == len(data)
            assert read == as_kio(message, version, theirs)


def test_kio_knows_nearly_all_apis() -> None:
    known = [
        name
        for name, cls in message_classes().items()
        if any(kio_class(name, version) for version in cls.SPEC.versions)
    ]
    assert len(known) > 180
