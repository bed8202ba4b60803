"""Keys and values of control records.

A key is two int16: its own version and the type. The values of transaction markers begin with
their version; in the others, of the raft layer, that int16 is the message's own first field.
"""

from __future__ import annotations

from enum import IntEnum

from kraftline.errors import Corrupt, NotRepresentable, Unsupported
from kraftline.schema.codec import reader, writer
from kraftline.schema.jsonform import Json, to_json
from kraftline.schema.lazy import message_class
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer


class ControlType(IntEnum):
    """Control record types, named as Kafka names them."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_CLASSES = {
    ControlType.ABORT: ("end_txn_marker", "EndTxnMarker"),
    ControlType.COMMIT: ("end_txn_marker", "EndTxnMarker"),
    ControlType.LEADER_CHANGE: ("leader_change_message", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("snapshot_header_record", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("snapshot_footer_record", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("kraft_version_record", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("voters_record", "VotersRecord"),
}
_MARKERS = (ControlType.ABORT, ControlType.COMMIT)


def decode_control_key(key: bytes) -> int:
    """The type that a control record's key says; perhaps one that ControlType does not have.

    Kafka reads keys of later versions as it reads version 0, and so do we.
    """
    r = Reader(key)
    version = r.int16()
    if version < 0:
        raise Corrupt(f"a control record's key of version {version}", position=0)
    kind: int = r.int16()
    return kind


def encode_control_key(kind: ControlType) -> bytes:
    """The key of a control record."""
    w = Writer(4)
    w.int16(0)
    w.int16(kind)
    return w.getvalue()


def control_class(kind: int) -> type[Message]:
    """The class of a control type's value."""
    try:
        module, name = _CLASSES[ControlType(kind)]
    except ValueError:
        raise Unsupported(f"control record type {kind} is not known") from None
    return message_class("kraftline.schema.control", module, name)


def decode_control_value(kind: int, value: bytes) -> tuple[Message, int]:
    """The value of a control record, and its version.

    A marker of a later version is read as the newest known, as Kafka does.
    """
    cls = control_class(kind)
    r = Reader(value)
    version: int = r.int16()
    if kind not in _MARKERS:
        r.reset(0, len(value))
    later = kind in _MARKERS and version > cls.SPEC.versions.last
    message: Message = reader(cls, cls.SPEC.versions.last if later else version)(r)
    if not later:
        r.finish()
    return message, version


def encode_control_value(kind: ControlType, message: Message, version: int = 0) -> bytes:
    """The value of a control record."""
    cls = control_class(kind)
    if type(message) is not cls:
        raise NotRepresentable(f"{type(message).__name__} is not a value of {kind.name}")
    w = Writer()
    if kind in _MARKERS:
        w.int16(version)
    writer(cls, version)(w, message)
    return w.getvalue()


def control_json(kind: int, value: bytes) -> Json:
    """The value of a control record in Kafka's JSON form."""
    message, version = decode_control_value(kind, value)
    return to_json(message, min(version, message.SPEC.versions.last))
