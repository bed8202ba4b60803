"""The metadata record types: their classes by id, and their names as Kafka prints them."""

from __future__ import annotations

from functools import cache

from kraftline.errors import Unsupported
from kraftline.schema.lazy import message_class
from kraftline.schema.metadata.table import RECORDS
from kraftline.schema.types import Message

TYPE_NAMES: dict[int, str] = {kind: module.upper() for kind, (module, _) in RECORDS.items()}
TYPE_IDS: dict[str, int] = {name: kind for kind, name in TYPE_NAMES.items()}


@cache
def record_class(kind: int) -> type[Message]:
    """The class of a record type; Unsupported when there is no such type."""
    if kind not in RECORDS:
        raise Unsupported(
            f"metadata record type {kind} is not known",
            hint="a newer Kafka may have written it",
        )
    return message_class("kraftline.schema.metadata", *RECORDS[kind])


def record_classes() -> dict[str, type[Message]]:
    """Every record class by its name in Kafka, ordered by id; this imports them all."""
    return {name: record_class(kind) for kind, name in TYPE_NAMES.items()}
