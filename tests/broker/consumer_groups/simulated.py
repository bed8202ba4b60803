"""Members of the new protocol as real clients are, and a coordinator's partition in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from kraftline.broker.coordinators.groups.consumer.deciding import Caller
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.groups.counts import Counts
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.config.effective import Config
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.clusters import Cluster
from tests.broker.consumer_groups.telling import Held, alive, join, leave
from tests.groups.memory import MemoryShard, VirtualLoop
from tests.groups.states import loaded_from

GROUP = "g"


class Coordinator:
    """Everything that a broker has of one partition, with a loop whose time stands still."""

    def __init__(self, config: Config, cluster: Cluster) -> None:
        self.loop = VirtualLoop()
        self.cluster = cluster
        self.config = config
        self.settings = Settings(config)
        self.batches: list[bytes] = []
        self.state = self._started()

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.state.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @property
    def shard(self) -> MemoryShard:
        assert isinstance(self.state.shard, MemoryShard)
        return self.state.shard

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """The answer; a Refusal where it is not taken."""

        async def call() -> ConsumerGroupHeartbeatResponse:
            told = self.state.desk.heartbeat(request, Caller("client", "/127.0.0.1", 1))
            return await told if isinstance(told, Awaitable) else told

        answer = self.loop.run(call())
        self.settle()
        return answer

    def settle(self) -> None:
        """What is looked up in threads has been found."""
        self.loop.settle()
        while self.state._tasks:
            self.loop.run(asyncio.wait(tuple(self.state._tasks)))
            self.loop.settle()

    def pass_time(self, ms: int) -> None:
        self.loop.advance(ms)
        self.settle()

    def restart(self) -> None:
        self.state.close()
        self.settle()
        self.state = self._started()

    def reread(self) -> GroupsState:
        """The state as the log alone tells it."""
        return loaded_from(self.batches, self._state(MemoryShard(self.loop, []))).state

    def metadata_changed(self) -> None:
        self.state.metadata_changed(self.cluster.last, self.cluster.image)

    def close(self) -> None:
        self.state.close()
        self.loop.close()

    def _state(self, shard: Any) -> GroupsState:
        return GroupsState(shard, self.config, lambda: self.cluster.image, Counts(), self.settings)

    def _started(self) -> GroupsState:
        async def begin() -> GroupsState:
            shard: Any = MemoryShard(self.loop, self.batches)
            state = loaded_from(self.batches, self._state(shard)).state
            shard.state = state
            state.loaded()
            return state

        return self.loop.run(begin())


class Consumer:
    """`owned` is what it reads; what it is told not to read any more it reads until it lets go."""

    def __init__(self, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance
        self.joins = 0
        self.epoch = 0
        self.is_member = False
        self.owned: set[tuple[Uuid, int]] = set()
        self.assigned: set[tuple[Uuid, int]] = set()
        self._told: set[tuple[Uuid, int]] | None = None
        # What it joined with: who missed an answer says all of it again.
        self._joined_with: dict[str, Any] = {}
        self._missed = False

    @property
    def member_id(self) -> str:
        """Static members come back under another id each time."""
        return self.name if self.instance is None else f"{self.name}-{self.joins}"

    def join(self, coordinator: Coordinator, topics: tuple[str, ...], regex: str | None) -> None:
        if self.instance is not None:
            self.joins += 1
        self.abandon()
        request = join(GROUP, self.member_id, *topics, regex=regex, instance_id=self.instance)
        names = ("rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex")
        self._joined_with = {name: getattr(request, name) for name in names}
        self._ask(coordinator, request, loses_answer=False)

    def beat(self, coordinator: Coordinator, *, says_all: bool, loses_answer: bool) -> None:
        held: Held | None = None
        if says_all or self._missed or self._told != self.owned:
            by_topic: dict[Uuid, list[int]] = {}
            for topic, partition in sorted(self.owned):
                by_topic.setdefault(topic, []).append(partition)
            held = tuple((topic, tuple(each)) for topic, each in by_topic.items())
        fields = self._joined_with if self._missed else {}
        request = alive(
            GROUP, self.member_id, self.epoch, held, instance_id=self.instance, **fields
        )
        self._ask(coordinator, request, loses_answer=loses_answer)
        if held is not None and not loses_answer:
            self._told = set(self.owned)

    def let_go(self) -> None:
        """Give up what it must not read, and begin with what it may."""
        self.owned = set(self.assigned)

    def leave(self, coordinator: Coordinator, epoch: int = -1) -> None:
        request = leave(GROUP, self.member_id, self.instance, epoch)
        self.abandon()
        self.is_member = False
        try:
            coordinator.ask(request)
        except Refusal as refusal:
            if refusal.code not in _GONE:
                raise

    def abandon(self) -> None:
        self.epoch = 0
        self.owned = set()
        self.assigned = set()
        self._told = None

    def _ask(
        self,
        coordinator: Coordinator,
        request: ConsumerGroupHeartbeatRequest,
        *,
        loses_answer: bool,
    ) -> None:
        try:
            answer = coordinator.ask(request)
        except Refusal as refusal:
            if refusal.code in _GONE:
                self.abandon()
                self.is_member = False
            elif refusal.code not in _MAY_BE:
                raise
            return
        if loses_answer:
            self._told = None
            self._missed = True
            return
        self._missed = False
        self.is_member = True
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {
                (topic.topic_id, partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            }
            # It begins with what is new only after it has let go of the rest.
            if self.owned <= self.assigned:
                self.owned = set(self.assigned)


_GONE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
# A write was lost; an instance lives; there is no room.
_MAY_BE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    }
)
