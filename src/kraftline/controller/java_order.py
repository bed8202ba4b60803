"""The order in which Java's HashMap and HashSet give back what was put in.

Kafka keeps parts of a request in such maps, so the order of its records and answers is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, over UTF-16 units, as an unsigned number of 32 bits."""
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        found = (31 * found + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return found


def in_string_order(texts: Iterable[str], room: int = 16) -> list[str]:
    """Different texts, as a HashMap that they were put into one by one gives them back; `room` is
    what it was made for."""
    known = list(dict.fromkeys(texts))
    size = _size(len(known), room)
    # Inside a bucket the order is that of insertion, which a stable sort keeps.
    return sorted(known, key=lambda text: _bucket(string_hash(text), size))


def in_number_order(numbers: Iterable[int]) -> list[int]:
    """Different whole numbers, likewise."""
    known = list(dict.fromkeys(numbers))
    size = _size(len(known))
    return sorted(known, key=lambda number: _bucket(number & 0xFFFFFFFF, size))


def _size(count: int, room: int = 16) -> int:
    size = 1
    while size < room:
        size *= 2
    while count > size * 3 // 4:
        size *= 2
    return size


def _bucket(hashed: int, size: int) -> int:
    return (hashed ^ hashed >> 16) & (size - 1)
