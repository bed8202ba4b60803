"""What a topic may be called, and which topics are Kafka's own."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 249
INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_legal = re.compile(r"[a-zA-Z0-9._-]*").fullmatch


def is_internal(name: str) -> bool:
    return name in INTERNAL


def is_valid(name: str) -> bool:
    return what_is_wrong_with(name) is None


def what_is_wrong_with(name: str) -> str | None:
    """In Kafka's words; None for a name that a topic may have."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    # Java counts characters beyond the basic plane twice.
    if len(name.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST}"
    if _legal(name) is None:
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return None
