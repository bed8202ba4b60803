"""Why a snapshot is not written."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.errors import KraftlineError


class Refused(KraftlineError):
    """What was asked for would lose something, or cannot be. `details` are one a line."""

    def __init__(self, reason: str, details: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = tuple(details)
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.reason, *(f"  - {each}" for each in self.details)]
        return "\n".join([*lines, self.hint] if self.hint else lines)
