"""What Kafka says of one config key."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Value: TypeAlias = "bool | int | float | str | list[str] | None"


class Type(enum.Enum):
    """How a value is written, by Kafka's names."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


class Key(msgspec.Struct, frozen=True):
    """`default` is as Kafka prints it.

    `least`, `most` and `choices` are what may be given, `besides` a number that is allowed outside
    of the range; the values of an `is_set` list must differ. `synonyms` are the broker's keys that
    a topic's or group's key falls back to, in that order, each with what it is multiplied by.
    `update` is how it may change on a running broker: read-only, per-broker or cluster-wide.
    """

    name: str
    type: Type
    default: str | None = None
    required: bool = False
    least: float | None = None
    most: float | None = None
    besides: float | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    not_empty: bool = False
    is_set: bool = False
    importance: str = "medium"
    internal: bool = False
    update: str = "read-only"
    synonyms: Mapping[str, int] = {}
