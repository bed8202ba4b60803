"""The order in which Java's hash maps and sets give back members, topics and partitions.

Kafka's assignors walk through such maps, so what they assign depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from kraftline.controller.java_order import string_hash
from kraftline.schema.uuids import Uuid

_LEAST = 16


def in_member_order(members: Collection[str]) -> list[str]:
    """Members, as a map that they were put into one by one."""
    size = _grown(len(members))
    return sorted(members, key=lambda each: _spread(_text_hash(each)) & (size - 1))


def in_topic_order(topics: Collection[Uuid], *, room: int = _LEAST) -> list[Uuid]:
    """Topics, as a map that was made for `room` of them and grew if there were more."""
    size = max(_power(room), _grown(len(topics)))
    return sorted(topics, key=lambda each: _spread(_uuid_hash(each)) & (size - 1))


def in_partition_order(partitions: Iterable[int]) -> list[int]:
    """Partitions, as a set that was made from a list of them."""
    found = sorted(partitions)
    size = _power(room_of_copy(len(found)))
    if not found or found[-1] < size:
        return found
    return sorted(found, key=lambda each: _spread(each) & (size - 1))


def room_of_copy(count: int) -> int:
    """What a HashSet is made for that copies so many."""
    return max(int(count / 0.75) + 1, _LEAST)


def _spread(hashed: int) -> int:
    return hashed ^ hashed >> 16


def _grown(count: int) -> int:
    size = _LEAST
    while count > size * 3 // 4:
        size *= 2
    return size


def _power(room: int) -> int:
    return 1 << (room - 1).bit_length()


@lru_cache(maxsize=16384)
def _text_hash(text: str) -> int:
    return string_hash(text)


@lru_cache(maxsize=16384)
def _uuid_hash(uuid: Uuid) -> int:
    halves = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return (halves >> 32 ^ halves) & 0xFFFFFFFF
