"""A decision: the records that make it so, and what the one who asked is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from kraftline.metadata.write_options import Versioned

T = TypeVar("T")


class Decision(msgspec.Struct, Generic[T], frozen=True):
    """`records` take effect all together or not at all; without any nothing changes."""

    response: T
    records: Sequence[Versioned] = ()
