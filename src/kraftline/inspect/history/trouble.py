"""What stands in the way of an answer: damage, gaps, records that do not fit."""

from __future__ import annotations

import msgspec

from kraftline.errors import KraftlineError


class Trouble(msgspec.Struct, frozen=True):
    """Something that is wrong, and where. `harmless`: it is odd, but hides nothing."""

    reason: str
    file: str | None = None
    position: int | None = None
    offset: int | None = None
    harmless: bool = False

    def __str__(self) -> str:
        where = []
        if self.file is not None:
            where.append(self.file)
        if self.position is not None:
            where.append(f"position {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        return f"{', '.join(where)}: {self.reason}" if where else self.reason


class Unanswerable(KraftlineError):
    """A question that this history has no answer to: outside its range, or about nothing in it."""
