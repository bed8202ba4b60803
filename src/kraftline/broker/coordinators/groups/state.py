"""Everything that one partition of `__consumer_offsets` says: offsets, and groups of all kinds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.classic.rebalancing import Rebalancing
from kraftline.broker.coordinators.groups.classic.records import empty_group_record, group_from
from kraftline.broker.coordinators.groups.consumer.desk import Desk
from kraftline.broker.coordinators.groups.consumer.group import CONSUMER_GROUP_KEYS
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.groups.counts import Counts
from kraftline.broker.coordinators.groups.group import Group
from kraftline.broker.coordinators.groups.offsets import NEVER, Committed, Offsets, tombstones
from kraftline.broker.coordinators.shard import Pair, Shard
from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.broker.coordinators.timers import Timers
from kraftline.config.effective import Config
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.group.group_metadata import GroupMetadataKey, GroupMetadataValue
from kraftline.schema.coordinator.group.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from kraftline.schema.coordinator.group.offset_commit import OffsetCommitKey, OffsetCommitValue

_logger = logging.getLogger(__name__)
_EXPIRY: Final = "expiry"
_A_TURN: Final = 2_000  # offsets that are looked at in one go
_Replay: TypeAlias = Callable[[Any, Any, Producer | None], None]


class GroupsState(State):
    """`image` gives the cluster's metadata as it is now. `groups` are those of all kinds; only
    `replay` puts one there or takes one away. `is_loaded` is so once timers may run."""

    def __init__(
        self,
        shard: Shard[GroupsState],
        config: Config,
        image: Callable[[], MetadataImage],
        counts: Counts,
        consumer: Settings,
    ) -> None:
        self.shard = shard
        self.counts = counts
        self.config = config
        self.image = image
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.is_loaded = False
        self.is_closed = False
        self.rebalancing = Rebalancing(self)
        self.desk = Desk(self, consumer)
        self._retention_ms = config.whole("offsets.retention.minutes") * 60_000
        self._check_ms = config.whole("offsets.retention.check.interval.ms")
        self._tasks: set[asyncio.Task[None]] = set()
        self._replays: dict[type, _Replay] = {
            LegacyOffsetCommitKey: self._replay_offset,
            OffsetCommitKey: self._replay_offset,
            GroupMetadataKey: self._replay_classic,
            **dict.fromkeys(CONSUMER_GROUP_KEYS, self.desk.replay),
        }

    def classic_group(self, group_id: str) -> ClassicGroup:
        """The classic group of an id, made if there is none. A group of another kind that is empty
        makes room for it; what is wrong is raised as a Refusal."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        changes = [] if group is None else group.tombstones()
        record = empty_group_record(group_id, self.shard.clock())
        self.shard.write_unwaited([*changes, record])
        made = self.groups[group_id]
        assert isinstance(made, ClassicGroup)
        return made

    def commit(
        self,
        group_id: str,
        commits: Sequence[tuple[str, int, Committed]],
        pairs: Sequence[Pair],
    ) -> Awaitable[None] | None:
        """As writing the records of offsets, whose keys and values are made already."""
        now = commits[0][2].committed_at
        appended = self.shard.append_pairs(pairs, now)
        self.offsets.commit(group_id, commits)
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, None)
        self.counts.commits += len(commits)
        return self.shard.settled(appended)

    def delete(self, group: Group) -> list[Change]:
        """The records that delete a group with all of its offsets."""
        group_id = group.group_id
        return [
            *tombstones(group_id, self.offsets.everything(group_id)),
            *group.tombstones(),
        ]

    def error_of_write(self, refusal: Refusal) -> ErrorCode:
        """What members are told where a group could not be kept."""
        if refusal.code == ErrorCode.RECORD_LIST_TOO_LARGE:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return refusal.code

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that takes its time."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def replay(self, change: Change, producer: Producer | None) -> None:
        replay = self._replays.get(type(change.key))
        if replay is not None:
            replay(change.key, change.value, producer)

    def replay_raw(self, key: bytes, value: bytes | None) -> bool:
        if value is None or key[:2] != b"\0\1":
            return False
        group = self.offsets.load(key, value)
        if group is None:
            return False
        if group not in self.groups:
            self.groups[group] = ClassicGroup(group, None)
        return True

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        self.offsets.end_transaction(producer, is_committed=is_committed)

    def loaded(self) -> None:
        """Timers begin here."""
        self.is_loaded = True
        self.offsets.loaded()
        for group in tuple(self.groups.values()):
            if isinstance(group, ClassicGroup):
                self.rebalancing.resume(group)
        self.desk.loaded()
        self.timers.set(_EXPIRY, self._check_ms, self._expire)

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.desk.metadata_changed(delta, image)
        if delta.topics is None:
            return
        for topic in delta.topics.deleted.values():
            self.shard.write_unasked(self.offsets.of_topic(topic.name, topic.id))

    def close(self) -> None:
        self.is_closed = True
        self.timers.close()
        for group in self.groups.values():
            group.close()

    def _replay_offset(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        producer: Producer | None,
    ) -> None:
        self.offsets.replay(key, value, producer)
        if value is not None and key.group not in self.groups:
            # Nobody joins such a group: its offsets are all there is to it.
            self.groups[key.group] = ClassicGroup(key.group, None)

    def _replay_classic(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, producer: Producer | None
    ) -> None:
        known = self.groups.get(key.group)
        if value is None:
            if isinstance(known, ClassicGroup):
                del self.groups[key.group]
                self.rebalancing.forget(known)
                known.close()
            return
        if self.is_loaded and isinstance(known, ClassicGroup):
            return  # the record tells what the group is already
        group = self.groups[key.group] = group_from(key.group, value)
        if self.is_loaded:
            self.rebalancing.resume(group)

    def _expire(self) -> None:
        """Offsets whose retention is over go, and so do groups that have nothing left."""
        self.spawn(self._expire_in_turns())

    async def _expire_in_turns(self) -> None:
        """Where there are many, nobody waits for all of them."""
        looked_at = 0
        for group in tuple(self.groups.values()):
            if self.is_closed:
                return
            group_id = group.group_id
            if self.groups.get(group_id) is group:
                gone, is_all = self._expired_of(group)
                changes = tombstones(group_id, gone)
                if is_all and group.is_empty and not self.offsets.has_open_transaction(group_id):
                    changes += group.tombstones()
                self.counts.expirations += len(gone)
                self.shard.write_unasked(changes)
            looked_at += 1 + sum(map(len, self.offsets.of.get(group_id, {}).values()))
            if looked_at > _A_TURN:
                looked_at = 0
                await asyncio.sleep(0)
        self.timers.set(_EXPIRY, self._check_ms, self._expire)

    def _expired_of(self, group: Group) -> tuple[list[tuple[str, int]], bool]:
        """What has expired, and whether that is all."""
        topics = self.offsets.of.get(group.group_id)
        if topics is None:
            return [], True
        since = group.since()
        if since is None:
            return [], False
        now = self.shard.clock()
        gone = [
            (topic, partition)
            for topic, partitions in topics.items()
            if not group.is_subscribed(topic)
            for partition, committed in partitions.items()
            if self._is_over(committed, since(committed), now)
            and not self.offsets.is_pending(group.group_id, topic, partition)
        ]
        return gone, len(gone) == sum(map(len, topics.values()))

    def _is_over(self, committed: Committed, since: int, now: int) -> bool:
        if committed.expires_at != NEVER:
            return now >= committed.expires_at
        return now - since >= self._retention_ms
