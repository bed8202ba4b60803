"""What an assignor is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import msgspec

from kraftline.schema.uuids import Uuid

# Partitions by topic; a topic without any is not there.
Assigned: TypeAlias = Mapping[Uuid, frozenset[int]]


class Wish(msgspec.Struct, frozen=True, gc=False):
    """A member: the topics that it subscribes to and that exist, and what it was to have so far."""

    topics: frozenset[Uuid]
    assigned: Assigned
    instance_id: str | None = None


class Task(msgspec.Struct, frozen=True, gc=False):
    """`partitions` counts those of every topic that somebody subscribes to. `taken` has what was
    assigned before to anybody, also to members that are gone. `is_even`: all members subscribe to
    the same topics."""

    members: Mapping[str, Wish]
    partitions: Mapping[Uuid, int]
    taken: Mapping[Uuid, Collection[int]]
    is_even: bool
