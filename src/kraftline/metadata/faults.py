"""What can be wrong with metadata: a record that does not fit the state before it, and state that
an older metadata version has no record for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from kraftline.errors import KraftlineError
from kraftline.schema.types import Message


class ReplayError(KraftlineError):
    """A record that cannot follow what came before it. The delta is as it was before the record.

    Whoever knows the offset adds it with :meth:`at`.
    """

    def __init__(
        self, reason: str, *, record: Message | None = None, offset: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.record = record
        self.offset = offset

    def at(self, *, offset: int | None = None, record: Message | None = None) -> Self:
        """Fill in what is not known yet."""
        self.offset = offset if self.offset is None else self.offset
        self.record = record if self.record is None else self.record
        return self

    def __str__(self) -> str:
        where = "" if self.offset is None else f"offset {self.offset}: "
        what = "" if self.record is None else f" ({type(self.record).__name__})"
        return f"{where}{self.reason}{what}"


class UnwritableMetadata(KraftlineError):
    """An image holds what the metadata version to be written cannot say."""

    def __init__(self, metadata_version: str, lost: Sequence[str]) -> None:
        super().__init__(
            "Metadata has been lost because the following could not be represented in "
            f"metadata.version {metadata_version}: {', '.join(lost)}"
        )
        self.metadata_version = metadata_version
        self.lost = tuple(lost)
