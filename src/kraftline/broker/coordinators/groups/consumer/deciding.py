"""What decisions about consumer groups are made on, and what they come to.

A decision looks at a group and returns records; nothing has happened until these are written.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kraftline.broker.coordinators.groups.consumer.assignors.task import Task
from kraftline.broker.coordinators.groups.consumer.hashing import TopicHashes
from kraftline.broker.coordinators.groups.consumer.member import Member
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.state import Change
from kraftline.metadata.image import MetadataImage


class Caller(msgspec.Struct, frozen=True, gc=False):
    """Who asks. `may_describe`: which topics it may know of; None: all."""

    client_id: str
    host: str
    version: int
    may_describe: Callable[[str], bool] | None = None


class Ground(msgspec.Struct, frozen=True, gc=False):
    """`new_topics_at` is the metadata's offset at which topics were last created, as far as is
    known; `is_resolving`: regular expressions of the group are being looked up already;
    `is_assigning`: and so is a target."""

    image: MetadataImage
    now: int
    settings: Settings
    hashes: TopicHashes
    new_topics_at: int = 0
    is_resolving: bool = False
    is_assigning: bool = False


class Assigning(msgspec.Struct, frozen=True, gc=False):
    """A target that is to be found in a thread, for an epoch of the group."""

    epoch: int
    assignor: str
    task: Task


class Step(msgspec.Struct, gc=False):
    """A member's step: how it was and how it will be, the records, and the regular expressions and
    the target that are to be looked up for its group."""

    before: Member
    member: Member
    changes: list[Change]
    regexes: frozenset[str] | None = None
    assigning: Assigning | None = None
    has_moved: bool = False
