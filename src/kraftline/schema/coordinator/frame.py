"""Keys and values of the coordinators' topics: what the leading int16 of each means.

A key begins with its record type, and the message after it is always version 0. A value begins
with its version; its type is the key's. No value (a tombstone) deletes what the key names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from kraftline.errors import NotRepresentable, Unsupported
from kraftline.schema.codec import reader, writer
from kraftline.schema.coordinator.embedded import spell_out
from kraftline.schema.coordinator.group.table import RECORDS as GROUP_RECORDS
from kraftline.schema.coordinator.share.table import RECORDS as SHARE_RECORDS
from kraftline.schema.coordinator.transaction.table import RECORDS as TRANSACTION_RECORDS
from kraftline.schema.jsonform import Json, json_reader
from kraftline.schema.lazy import message_class
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer


class CoordinatorTopic(msgspec.Struct, frozen=True, eq=False):
    """A topic of one coordinator; `records` has module, key and value class by type."""

    name: str
    package: str
    records: dict[int, tuple[str, str, str]]


# GroupMetadata, the one record whose bytes the dump tool looks into.
_CLASSIC_GROUP = 2

_HERE = "kraftline.schema.coordinator"
OFFSETS = CoordinatorTopic("__consumer_offsets", f"{_HERE}.group", GROUP_RECORDS)
TRANSACTIONS = CoordinatorTopic("__transaction_state", f"{_HERE}.transaction", TRANSACTION_RECORDS)
SHARES = CoordinatorTopic("__share_group_state", f"{_HERE}.share", SHARE_RECORDS)
TOPICS: dict[str, CoordinatorTopic] = {t.name: t for t in (OFFSETS, TRANSACTIONS, SHARES)}


@cache
def record_classes(topic: CoordinatorTopic, kind: int) -> tuple[type[Message], type[Message]]:
    """The key and the value class of a record type; Unsupported when there is no such type."""
    if kind not in topic.records:
        raise Unsupported(f"{topic.name} record type {kind} is not known", position=0)
    module, key, value = topic.records[kind]
    return message_class(topic.package, module, key), message_class(topic.package, module, value)


def key_type(key: bytes) -> int:
    """The record type that a key says."""
    kind: int = Reader(key).int16()
    return kind


def decode_key(topic: CoordinatorTopic, key: bytes) -> Message:
    """The key; its SPEC.key is the record type."""
    r = Reader(key)
    cls, _ = record_classes(topic, r.int16())
    message: Message = _all(r, reader(cls, 0))
    return message


def decode_value(topic: CoordinatorTopic, kind: int, value: bytes) -> tuple[Message, int]:
    """The value under a key of type `kind`, and its version."""
    _, cls = record_classes(topic, kind)
    r = Reader(value)
    version = r.int16()
    message: Message = _all(r, reader(cls, version))
    return message, version


def encode_key(topic: CoordinatorTopic, message: Message) -> bytes:
    """A key as the log has it."""
    return _encode(topic, message, 0, message.SPEC.key, 0)


def encode_value(topic: CoordinatorTopic, message: Message, version: int) -> bytes:
    """A value as the log has it."""
    return _encode(topic, message, 1, version, version)


def key_json(topic: CoordinatorTopic, key: bytes) -> Json:
    """A key as Kafka's dump tool prints it."""
    r = Reader(key)
    kind = r.int16()
    cls, _ = record_classes(topic, kind)
    return {"type": str(kind), "data": _all(r, json_reader(cls, 0))}


def value_json(topic: CoordinatorTopic, kind: int, value: bytes) -> Json:
    """A value as Kafka's dump tool prints it."""
    _, cls = record_classes(topic, kind)
    r = Reader(value)
    version = r.int16()
    data: Json = _all(r, json_reader(cls, version))
    if topic is OFFSETS and kind == _CLASSIC_GROUP and data["protocolType"] == "consumer":
        for member in data["members"]:
            spell_out(member)
    return {"version": str(version), "data": data}


def _all(r: Reader, read: Callable[[Reader], Any]) -> Any:
    message = read(r)
    r.finish()
    return message


def _encode(topic: CoordinatorTopic, message: Message, part: int, lead: int, version: int) -> bytes:
    kind = message.SPEC.key
    if kind not in topic.records or record_classes(topic, kind)[part] is not type(message):
        what = ("key", "value")[part]
        raise NotRepresentable(f"{type(message).__name__} is not a {what} of {topic.name}")
    w = Writer()
    w.int16(lead)
    writer(type(message), version)(w, message)
    return w.getvalue()
