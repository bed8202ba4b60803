"""The exceptions that users can meet. Each says what happened, where, and what to try."""

from __future__ import annotations

from typing import Self


class KraftlineError(Exception):
    """Base of everything that Kraftline raises on purpose."""


class BadData(KraftlineError):
    """Bytes that are not what Kafka would have written.

    Decoders know the position inside their buffer; whoever knows the file, the offset or what
    a person could try adds that with :meth:`at` on the way up.
    """

    def __init__(
        self,
        reason: str,
        *,
        file: str | None = None,
        position: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = file
        self.position = position
        self.offset = offset
        self.hint = hint

    def at(
        self,
        *,
        file: str | None = None,
        position: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> Self:
        """Fill in what is not known yet; what a lower layer said already stands."""
        self.file = file if self.file is None else self.file
        self.position = position if self.position is None else self.position
        self.offset = offset if self.offset is None else self.offset
        self.hint = hint if self.hint is None else self.hint
        return self

    def __str__(self) -> str:
        where = []
        if self.file is not None:
            where.append(self.file)
        if self.position is not None:
            where.append(f"position {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        text = f"{', '.join(where)}: {self.reason}" if where else self.reason
        return f"{text} ({self.hint})" if self.hint else text


class Truncated(BadData):
    """The bytes end before what they announce: a half-written batch, or a cut file."""


class Corrupt(BadData):
    """The bytes contradict themselves: a wrong checksum, a negative length, a lying count."""


class Unsupported(BadData):
    """A magic, codec, record type or version that this release does not know."""


class TooLarge(BadData):
    """Larger than the limit in force; nothing was allocated for it."""


class NotRepresentable(KraftlineError):
    """A message holds a value that the version to be written has no place for."""


class NotKafka(KraftlineError):
    """The path is not something that Kafka writes, or cannot be read at all."""
