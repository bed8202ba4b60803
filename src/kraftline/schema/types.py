"""The language in which messages are declared.

A message is one frozen class for all its versions. Its fields stand in wire order, each with
Kafka's default; `Annotated` marks say what plain Python types cannot: the wire type, in which
versions a field is there, its tag. `kraftline.schema.codec` turns declarations into code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple, TypeAlias

import msgspec

from kraftline.schema.uuids import ZERO, Uuid

__all__ = [
    "IGNORABLE",
    "ZERO",
    "Bool",
    "Bytes",
    "Flexible",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Message",
    "Name",
    "Nullable",
    "RawTag",
    "Records",
    "Spec",
    "String",
    "Tag",
    "UInt16",
    "UInt32",
    "Uuid",
    "V",
    "Versions",
]

_NO_LIMIT = 32767


class Versions(msgspec.Struct, frozen=True):
    """A closed range of versions; false when there are none."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Kafka's notation: `"3"`, `"1-4"`, `"2+"` or `"none"`."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), _NO_LIMIT)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.first, other.first), min(self.last, other.last))
        return both or NO_VERSIONS

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.last == _NO_LIMIT:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


NO_VERSIONS = Versions(0, -1)


# Marks are Structs, not named tuples: typing keeps one object for equal marks, and named tuples
# of different kinds are equal when their items are.
class Wire(msgspec.Struct, frozen=True):
    """The wire type behind a plain Python type."""

    name: str


class V(msgspec.Struct, frozen=True):
    """The versions in which a field is there; without this mark, all of the message's."""

    versions: str


class Tag(msgspec.Struct, frozen=True):
    """A tagged field: written only when it is not the default."""

    number: int


class Nullable(msgspec.Struct, frozen=True):
    """The versions in which null is allowed, where the field itself is there in more."""

    versions: str


class Flexible(msgspec.Struct, frozen=True):
    """The versions in which a field is in compact form, where the message's do not apply."""

    versions: str


class Name(msgspec.Struct, frozen=True):
    """The field's name in Kafka's JSON, where the Python name does not give it away."""

    json: str


class _Ignorable(msgspec.Struct, frozen=True):
    """Dropped in silence by versions that have no place for the field."""


IGNORABLE = _Ignorable()

Int8: TypeAlias = Annotated[int, Wire("int8")]
Int16: TypeAlias = Annotated[int, Wire("int16")]
UInt16: TypeAlias = Annotated[int, Wire("uint16")]
Int32: TypeAlias = Annotated[int, Wire("int32")]
UInt32: TypeAlias = Annotated[int, Wire("uint32")]
Int64: TypeAlias = Annotated[int, Wire("int64")]
Float64: TypeAlias = Annotated[float, Wire("float64")]
Bool: TypeAlias = Annotated[bool, Wire("bool")]
String: TypeAlias = Annotated[str, Wire("string")]
Bytes: TypeAlias = Annotated[bytes, Wire("bytes")]
Records: TypeAlias = Annotated[bytes, Wire("records")]


class Spec:
    """What belongs to a message as a whole, and so to every struct inside it.

    `kafka` is the release that the declaration was taken from.
    """

    __slots__ = ("flexible", "kafka", "key", "latest_unstable", "listeners", "versions")

    def __init__(
        self,
        *,
        versions: str,
        flexible: str,
        kafka: str,
        key: int = -1,
        listeners: tuple[str, ...] = (),
        latest_unstable: bool = False,
    ) -> None:
        self.versions = Versions.parse(versions)
        self.flexible = Versions.parse(flexible)
        self.kafka = kafka
        self.key = key
        self.listeners = listeners
        self.latest_unstable = latest_unstable

    def is_flexible(self, version: int) -> bool:
        return version in self.flexible


class RawTag(NamedTuple):
    """A tagged field that the declaration does not know, kept as it came."""

    tag: int
    data: bytes


# Messages are immutable trees, so no cycle can go through them: gc=False spares the collector.
class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """Base of every message and of the structs inside it, which share its SPEC."""

    SPEC: ClassVar[Spec]
    unknown_tags: tuple[RawTag, ...] = ()
