"""Bytes of a message that are elsewhere, such as in a file, and are sent from there."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Lent(Struct, frozen=True):
    """Stands for `length` bytes in a message; the writer leaves them out and says where they go."""

    length: int
    source: Any  # whoever lends knows what it is
