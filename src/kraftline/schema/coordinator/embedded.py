"""What consumers of the classic protocol embed in a group's bytes: subscription and assignment.

Each begins with its version. A version newer than those known is read as the newest known, as
Kafka's clients do: newer ones only add fields at the end.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TypeVar

from kraftline.errors import BadData, Corrupt
from kraftline.schema.codec import reader, writer
from kraftline.schema.coordinator.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kraftline.schema.jsonform import Json, to_json
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer

M = TypeVar("M", bound=Message)


def decode_subscription(data: bytes) -> tuple[ConsumerProtocolSubscription, int]:
    """What a member subscribes to, and the version it was written in."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> tuple[ConsumerProtocolAssignment, int]:
    """What a member was assigned, and the version it was written in."""
    return _decode(ConsumerProtocolAssignment, data)


def encode_embedded(
    message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int
) -> bytes:
    """The bytes of either, with the version in front."""
    w = Writer()
    w.int16(version)
    writer(type(message), version)(w, message)
    return w.getvalue()


def spell_out(member: Json) -> None:
    """Replaces the base64 of a classic member's JSON by what it says, where it can be read."""
    for name, cls in (
        ("subscription", ConsumerProtocolSubscription),
        ("assignment", ConsumerProtocolAssignment),
    ):
        try:
            message, version = _decode(cls, b64decode(member[name]))
        except BadData:
            continue
        member[name] = to_json(message, min(version, cls.SPEC.versions.last))


def _decode(cls: type[M], data: bytes) -> tuple[M, int]:
    r = Reader(data)
    version: int = r.int16()
    known = cls.SPEC.versions
    if version < known.first:
        raise Corrupt(f"{cls.__name__} of version {version}", position=0)
    message: M = reader(cls, min(version, known.last))(r)
    return message, version
