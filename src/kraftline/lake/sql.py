"""Pieces of SQL that DataFusion and Spark read alike.

Spark takes a backslash in a text for an escape: whoever hands it such SQL doubles them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

# DataFusion counts nanoseconds since 1970 in 64 bits.
_EARLIEST, _LATEST = -(2**63) // 1_000_000 + 1, 2**63 // 1_000_000 - 1
_SPECIAL = "\\.+()|[]{}^$"  # in a regular expression, of Rust and of Java


def name(text: str) -> str:
    """A column or a table; many of ours are words of SQL."""
    return f"`{text}`"


def text(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def time(ms: int) -> str:
    """A time to compare with; one that is beyond 1677 or 2262 is as far as these."""
    ms = min(max(ms, _EARLIEST), _LATEST)
    when = datetime.fromtimestamp(ms // 1000, UTC)
    return f"TIMESTAMP '{when:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z'"


def one_of(column: str, values: Iterable[str | int]) -> str:
    said = [text(value) if isinstance(value, str) else str(value) for value in values]
    if len(said) == 1:
        return f"{name(column)} = {said[0]}"
    return f"{name(column)} IN ({', '.join(said)})"


def like(column: str, patterns: Iterable[str]) -> str:
    """A text that is one of some, in which * stands for anything and ? for one character."""
    patterns = list(patterns)
    plain = [each for each in patterns if not is_pattern(each)]
    said = [one_of(column, plain)] if plain else []
    said += [
        f"regexp_like({name(column)}, {text(_regex(each))})"
        for each in patterns
        if is_pattern(each)
    ]
    return any_of(said)


def is_pattern(value: str) -> bool:
    return "*" in value or "?" in value


def all_of(conditions: Iterable[str]) -> str:
    found = [each for each in conditions if each]
    return " AND ".join(found) or "TRUE"


def any_of(conditions: Iterable[str]) -> str:
    found = list(conditions)
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


def _regex(pattern: str) -> str:
    stands_for = {"*": ".*", "?": ".", **{each: f"\\{each}" for each in _SPECIAL}}
    return f"^{''.join(stands_for.get(each, each) for each in pattern)}$"
