"""For which metadata version, and how strictly, an image is written as records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from kraftline.metadata.features import MetadataVersion
from kraftline.schema.types import Message

# A record and the version that it is written in.
Versioned: TypeAlias = tuple[Message, int]


class WriteOptions(msgspec.Struct, frozen=True):
    """`elr`: whether eligible leader replicas are on in the cluster; off, they are not written.

    What the version cannot say is told to `on_loss`, in Kafka's words and each once; without it
    writing such an image fails before the first record.
    """

    version: MetadataVersion
    elr: bool = False
    on_loss: Callable[[str], None] | None = None

    @property
    def writes_elr(self) -> bool:
        return self.elr and self.version.elr_supported
