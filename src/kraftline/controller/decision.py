"""A decision: the records that make it so, and what the one who asked is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from kraftline.controller.sessions import Sessions
from kraftline.metadata.write_options import Versioned

T = TypeVar("T")


class Decision(msgspec.Struct, Generic[T], frozen=True):
    """`records` take effect all together or not at all, unless they are so many that no batch
    holds them and `is_atomic` is false. `sessions` are those of the brokers from now on, None
    where they stay as they are."""

    response: T
    records: Sequence[Versioned] = ()
    sessions: Sessions | None = None
    is_atomic: bool = True
