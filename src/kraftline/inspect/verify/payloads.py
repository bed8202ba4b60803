"""Keys and values of Kafka's own topics, decoded to the last byte.

A checker takes a record's key and value and returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kraftline.errors import BadData, Corrupt, Unsupported
from kraftline.schema.control.frame import (
    ControlType,
    control_class,
    decode_control_key,
    decode_control_value,
)
from kraftline.schema.coordinator.frame import (
    TOPICS,
    CoordinatorTopic,
    decode_key,
    decode_value,
    key_type,
)
from kraftline.schema.metadata.frame import decode_record
from kraftline.schema.metadata.registry import TYPE_NAMES
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader
from kraftline.storage.names import METADATA_TOPIC


class Wrong(NamedTuple):
    """What is wrong with a record: the finding's code and words, and the bytes that show it.

    `meaning` where it is another than the code's own.
    """

    code: str
    problem: str
    data: bytes
    meaning: str | None = None


# What a coordinator does when it loads a partition of its topic.
_PASSES_OVER = "The coordinator passes the record over with a warning when it loads this partition."
_UNNOTICED = "The coordinator does not notice; what wrote this record does not keep to the format."
_NOT_LOADED = (
    "Loading this partition fails: the groups or transactions kept in it have no coordinator."
)

PayloadCheck: TypeAlias = Callable[[bytes | None, bytes | None], Wrong | None]


def payload_check(topic: str | None) -> PayloadCheck | None:
    """The checker of a topic; None for a topic whose records Kafka does not read itself."""
    if topic == METADATA_TOPIC:
        return check_metadata
    coordinator = TOPICS.get(topic or "")
    if coordinator is None:
        return None
    return lambda key, value: check_coordinator(coordinator, key, value)


def check_metadata(key: bytes | None, value: bytes | None) -> Wrong | None:
    """A record of the metadata log: no key, and a framed message as its value."""
    if key is not None:
        return Wrong("record-key", "a metadata record with a key, where none is allowed", key)
    if not value:
        what = "null" if value is None else "empty"
        return Wrong("record-value", f"a metadata record whose value is {what}", b"")
    try:
        decode_record(value)
    except BadData as error:
        return _wrong(error, _metadata_name(value), value)
    return None


def check_coordinator(
    topic: CoordinatorTopic, key: bytes | None, value: bytes | None
) -> Wrong | None:
    """A record of a coordinator's topic: typed key, and typed value unless it is a tombstone."""
    if key is None:
        problem = f"a record of {topic.name} without a key"
        return Wrong("record-key", problem, value or b"", _NOT_LOADED)
    try:
        kind = key_type(key)
        name = _coordinator_name(topic, kind)
        decode_key(topic, key)
    except BadData as error:
        name = _coordinator_name(topic, int.from_bytes(key[:2], "big", signed=True))
        wrong = _coordinators(_wrong(error, f"{name}, key", key))
        if wrong.code == "record-type":
            return wrong._replace(meaning=_PASSES_OVER)
        return wrong._replace(code="record-key") if wrong.code == "record-value" else wrong
    if value is None:
        return None
    try:
        decode_value(topic, kind, value)
    except BadData as error:
        version = int.from_bytes(value[:2], "big", signed=True)
        return _coordinators(_wrong(error, f"{name} v{version}", value))
    return None


def _coordinators(wrong: Wrong) -> Wrong:
    return wrong._replace(meaning=_UNNOTICED if wrong.code == "record-leftover" else _NOT_LOADED)


def check_control(
    key: bytes | None, value: bytes | None
) -> tuple[int | None, Message | None, Wrong | None]:
    """A control record: (its type, its value, what is wrong). Unknown types are nothing wrong."""
    if key is None:
        return None, None, Wrong("control-record", "a control record without a key", b"")
    name = "control record"
    try:
        kind = decode_control_key(key)
        try:
            control_class(kind)
        except Unsupported:
            return kind, None, None
        name = ControlType(kind).name
        if value is None:
            return kind, None, Wrong("control-record", f"{name}: its value is null", key)
        message, _ = decode_control_value(kind, value)
    except BadData as error:
        return None, None, Wrong("control-record", f"{name}: {error.reason}", value or key)
    return kind, message, None


def _wrong(error: BadData, name: str, data: bytes) -> Wrong:
    code = "record-value"
    if isinstance(error, Unsupported):
        code = "record-type"
    elif isinstance(error, Corrupt) and "left over" in error.reason:
        code = "record-leftover"
    where = "" if error.position is None else f" (byte {error.position} of {len(data)})"
    return Wrong(code, f"{name}: {error.reason}{where}", data)


def _metadata_name(value: bytes) -> str:
    """Type and version, as far as they can be read."""
    try:
        r = Reader(value)
        r.uvarint()
        kind = r.uvarint()
        name = TYPE_NAMES.get(kind, f"record type {kind}")
        return f"{name} v{r.uvarint()}"
    except BadData:
        return "metadata record"


def _coordinator_name(topic: CoordinatorTopic, kind: int) -> str:
    if kind not in topic.records:
        return f"{topic.name} record type {kind}"
    return topic.records[kind][0].upper()
