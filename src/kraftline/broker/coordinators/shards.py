"""The partitions of a coordinator's topic that this broker leads.

A publisher, after the one that opens logs: a partition that this broker begins to lead is loaded,
one that it leads no more is dropped. In between, who asks is told that it is loading.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Generic, TypeVar

from kraftline.broker.coordinators.loading import Loading, LoadingStopped, load
from kraftline.broker.coordinators.placing import partition_for
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.state import State
from kraftline.broker.partitions import Partitions
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.records.record import Codec
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import CoordinatorTopic

_logger = logging.getLogger(__name__)
S = TypeVar("S", bound=State)
_KEPT: Final = 100_000


class Shards(MetadataPublisher, Generic[S]):
    """`make` gives the empty state of a shard. `loading` has how far the partitions are that are
    being loaded; `foreign` counts records that were passed over, `slowest_ms` is what the partition
    took that took longest."""

    def __init__(
        self,
        topic: CoordinatorTopic,
        partitions: Partitions,
        make: Callable[[Shard[S]], S],
        clock: Callable[[], int],
        codec: Codec = Codec.NONE,
    ) -> None:
        self.topic = topic
        self.loading: dict[int, Loading] = {}
        self.foreign = 0
        self.slowest_ms = 0.0
        self.image = MetadataImage()
        self._partitions = partitions
        self._make = make
        self._clock = clock
        self._codec = codec
        self._all: dict[int, Shard[S]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Of keys that were asked for lately: a hash of Java's is slow work here.
        self._placed: dict[str, int] = {}
        self._placed_in = 0

    @property
    def name(self) -> str:
        return f"Coordinator of {self.topic.name}"

    @property
    def partition_count(self) -> int:
        """0 where the topic has not been made yet."""
        topic = self.image.topics.named(self.topic.name)
        return 0 if topic is None else len(topic.partitions)

    def partition_of(self, key: str) -> int | None:
        """The partition of a group or a transactional id; None where there is no topic yet."""
        count = self.partition_count
        if count != self._placed_in:
            self._placed.clear()
            self._placed_in = count
        number = self._placed.get(key)
        if number is None and count:
            if len(self._placed) >= _KEPT:
                self._placed.clear()
            number = self._placed[key] = partition_for(key, count)
        return number

    def of(self, key: str) -> S:
        """The state that has a group or a transactional id; a Refusal where it is not here."""
        number = self.partition_of(key)
        if number is None:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None)
        return self.at(number)

    def at(self, number: int) -> S:
        """The state of a partition; a Refusal where it is not here, or not yet."""
        shard = self._all.get(number)
        if shard is None or not shard.is_led or shard.failure is not None:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None)
        if shard.state is None:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)
        return shard.state

    def __iter__(self) -> Iterator[S]:
        """The states that are loaded."""
        for shard in tuple(self._all.values()):
            if shard.state is not None and shard.is_led:
                yield shard.state

    @property
    def failed(self) -> int:
        """How many partitions could not be loaded."""
        return sum(each.failure is not None for each in self._all.values())

    @property
    def active(self) -> int:
        """How many are loaded."""
        return sum(each.state is not None for each in self._all.values())

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        self.image = image
        if delta.topics is None:
            return
        changes = delta.topics.local_changes(self._partitions.broker_id)
        for where in (*changes.deletes, *changes.followers):
            if where.topic == self.topic.name:
                self._drop(where.partition)
        for where in changes.leaders:
            if where.topic == self.topic.name:
                self._lead(where.partition)
        for state in self:
            state.metadata_changed(delta, image)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        for number in tuple(self._all):
            self._drop(number)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _lead(self, number: int) -> None:
        partition = self._partitions.get(self.topic.name, number)
        known = self._all.get(number)
        if partition is None:  # its log is offline
            self._drop(number)
            return
        if known is not None:
            if known.partition is partition and known.epoch == partition.leader_epoch:
                return
            self._drop(number)
        shard: Shard[S] = Shard(
            self.topic,
            partition,
            self._clock,
            self._partitions.threads,
            self._partitions.flush_later,
            self._codec,
        )
        self._all[number] = shard
        if partition.log.start_offset == partition.log.end_offset:
            self._activate(shard, self._make(shard))
            return
        task = asyncio.create_task(self._load(shard), name=f"load {partition.log.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _drop(self, number: int) -> None:
        shard = self._all.pop(number, None)
        if shard is not None:
            shard.close()

    async def _load(self, shard: Shard[S]) -> None:
        log = shard.partition.log
        state = self._make(shard)
        progress = Loading(log.start_offset, log.end_offset)
        self.loading[shard.number] = progress
        began = time.monotonic()
        work = partial(load, log, self.topic, state, progress, lambda: shard.is_led)
        try:
            await asyncio.get_running_loop().run_in_executor(self._partitions.threads, work)
        except LoadingStopped:
            return
        except Exception as problem:
            _logger.exception("%s cannot be loaded", log.name)
            shard.failure = problem
            return
        finally:
            if self.loading.get(shard.number) is progress:
                del self.loading[shard.number]
            self.foreign += progress.foreign
            self.slowest_ms = max(self.slowest_ms, (time.monotonic() - began) * 1000)
        if progress.foreign:
            _logger.warning(
                "%s: %d records are of no kind that this node knows; they stay in the log",
                log.name,
                progress.foreign,
            )
        _logger.info(
            "%s: %d records loaded in %.0f ms",
            log.name,
            progress.records,
            (time.monotonic() - began) * 1000,
        )
        if shard.is_led:
            self._activate(shard, state)

    def _activate(self, shard: Shard[S], state: S) -> None:
        shard.state = state
        state.loaded()
