"""A case: a request that both are sent, in some versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.recorder.compare import Field, Normal


class Target(Protocol):
    """One of the two, as far as a request depends on it."""

    def topic_id(self, name: str) -> Uuid: ...


class Case(msgspec.Struct, frozen=True):
    """`request` makes it for a target and a version; `normal` is for fields that this case leaves
    free besides those that all do."""

    name: str
    key: int
    versions: range
    request: Callable[[Target, int], Message]
    normal: Mapping[Field, Normal] = {}


def always(request: Message) -> Callable[[Target, int], Message]:
    """The same for everyone."""
    return lambda target, version: request
