"""A change as data: what kind, of what, in which words, from what to what."""

from __future__ import annotations

from typing import Any

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`kind` is a stable code for programs, `text` a sentence for people.

    `because` is the cause as far as it is known; the text has it too. `brokers` are those that
    take part. `minor` changes are bookkeeping that a story leaves out unless asked for all.
    """

    kind: str
    subject: str
    text: str
    before: Any = None
    after: Any = None
    because: str | None = None
    topic: str | None = None
    partition: int | None = None
    brokers: tuple[int, ...] = ()
    minor: bool = False
