"""What every group is, be it of the classic protocol or of the one that came after it.

A group's id belongs to one kind at a time: all of them are in one dict. Offsets are committed and
read for a group of either kind, and whether that may be is the group's to say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from kraftline.broker.coordinators.groups.offsets import Committed
from kraftline.broker.coordinators.state import Change
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.api.leave_group import MemberIdentity, MemberResponse
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupResponse
from kraftline.schema.uuids import Uuid

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.classic.joining import Joiner


class Kind(Enum):
    """By Kafka's names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


# Raises a Refusal for a partition (topic, id of the topic, number) that the member that commits
# does not own in the epoch that it names; nothing of the request is committed then.
CheckPartition: TypeAlias = Callable[[str, Uuid, int], None]
# From which time on the retention of an offset counts.
Since: TypeAlias = Callable[[Committed], int]


class Group(Protocol):
    """What is wrong is raised as a Refusal. `group_id` is its name."""

    group_id: str

    @property
    def kind(self) -> Kind: ...

    @property
    def state(self) -> str:
        """As Kafka names it: Empty, Stable, ..."""

    @property
    def protocol_type(self) -> str:
        """As ListGroups tells it; empty for a group that only commits offsets."""

    @property
    def is_empty(self) -> bool:
        """Are there no members?"""

    @property
    def size(self) -> int:
        """How many members there are."""

    def has_member(self, member_id: str) -> bool: ...

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CheckPartition | None:
        """May this member commit offsets? Where it depends on the partition, what checks one."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """May this member read what the group has committed?"""

    def check_offset_delete(self) -> None:
        """May offsets of topics be deleted that it is not subscribed to?"""

    def check_delete(self) -> None:
        """May the group be deleted?"""

    def is_subscribed(self, topic: str) -> bool:
        """Does it read the topic just now, so that its offsets must stay?"""

    def since(self) -> Since | None:
        """When retention begins to count for its offsets; None: they do not expire now."""

    def tombstones(self) -> list[Change]:
        """The records that delete it, without its offsets."""

    def close(self) -> None:
        """It is gone, or led elsewhere: timers end, and whoever waits is told NOT_COORDINATOR."""


@runtime_checkable
class TakesClassicMembers(Protocol):
    """A group of another kind that members of the classic protocol may take part in. What is wrong
    is raised as a Refusal."""

    @property
    def is_empty(self) -> bool: ...

    def classic_join(self, joiner: Joiner) -> JoinGroupResponse | Awaitable[JoinGroupResponse]: ...

    def classic_sync(
        self, request: SyncGroupRequest
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]: ...

    def classic_heartbeat(self, request: HeartbeatRequest) -> ErrorCode: ...

    def classic_leave(self, members: Sequence[MemberIdentity]) -> tuple[MemberResponse, ...]: ...
