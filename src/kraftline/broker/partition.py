"""A partition that has a log here: who leads it, how far it is committed, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol

from kraftline.metadata.partition import PartitionRegistration
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import PartitionLog


class Waiter(Protocol):
    """Somebody who wants to know when more of a partition can be read, or it is led no more."""

    def wake(self, partition: Partition) -> None: ...


class Partition:
    """`registration` is what the metadata says of it, `epoch_start` where the log ended when this
    broker became its leader; `waiting` stay until they go by themselves."""

    __slots__ = (
        "_broker_id",
        "_flush",
        "_follower_ends",
        "epoch_start",
        "is_leader",
        "log",
        "registration",
        "topic_id",
        "waiting",
    )

    def __init__(self, broker_id: int, log: PartitionLog, topic_id: Uuid) -> None:
        self.log = log
        self.topic_id = topic_id
        self.registration: PartitionRegistration | None = None
        self.is_leader = False
        self.epoch_start = 0
        self.waiting: set[Waiter] = set()
        self._broker_id = broker_id
        self._follower_ends: dict[int, int] = {}
        self._flush: asyncio.Future[int] | None = None

    def __repr__(self) -> str:
        return f"Partition({self.log.name}, {'leader' if self.is_leader else 'follower'})"

    @property
    def leader_epoch(self) -> int:
        return -1 if self.registration is None else self.registration.leader_epoch

    @property
    def is_offline(self) -> bool:
        """Whether its disk has failed."""
        return self.log.disk.failure is not None

    @property
    def is_flushing(self) -> bool:
        return self._flush is not None

    @property
    def min_isr(self) -> int:
        """How many replicas have to be in sync for acks=all; no more than there are."""
        assert self.registration is not None
        return min(self.log.config.min_insync_replicas, len(self.registration.replicas))

    @property
    def isr_size(self) -> int:
        assert self.registration is not None
        return len(self.registration.isr)

    def lead(self, registration: PartitionRegistration) -> None:
        """This broker leads it: a new leader epoch begins at the log's end."""
        if registration.leader_epoch != self.leader_epoch:
            self._follower_ends.clear()
            self.epoch_start = self.log.end_offset
            self.log.assign_epoch(registration.leader_epoch)
        self.registration = registration
        self.is_leader = True
        self.advanced()

    def follow(self, registration: PartitionRegistration) -> None:
        """Somebody else leads it, or nobody."""
        self.registration = registration
        self.is_leader = False
        self.wake()

    def stop(self) -> None:
        """It is on its way out."""
        self.is_leader = False
        self.wake()

    def advanced(self) -> None:
        """Something was appended, or who is in sync has changed. What all of these have is
        committed: at once where this broker is alone."""
        registration = self.registration
        assert registration is not None
        end = self.log.end_offset
        if len(registration.isr) > 1:
            ends = self._follower_ends
            for replica in registration.isr:
                if replica != self._broker_id:
                    end = min(end, ends.get(replica, -1))
        if end > self.log.high_watermark:
            self.log.update_high_watermark(end)
        if self.waiting:
            self.wake()

    def follower_has(self, replica: int, end_offset: int) -> None:
        """A replica fetches from an offset on, so it has everything before it."""
        self._follower_ends[replica] = end_offset
        self.advanced()

    def wake(self) -> None:
        for each in tuple(self.waiting):
            each.wake(self)

    async def flushed(self, offset: int, threads: Executor) -> None:
        """Return once everything below an offset is durable. Those who wait at the same time share
        a flush; one that began before an append does not count for it."""
        log = self.log
        while log.recovery_point < offset:
            # One that is done but has not been put away yet would be awaited without an end.
            if self._flush is None or self._flush.done():
                self._flush = asyncio.get_running_loop().run_in_executor(threads, log.flush)
                self._flush.add_done_callback(self._flush_done)
            # A client that goes away must not take the flush of the others with it.
            await asyncio.shield(self._flush)

    def _flush_done(self, flush: asyncio.Future[int]) -> None:
        if self._flush is flush:
            self._flush = None
        if not flush.cancelled():
            flush.exception()  # it is told to whoever waits


Settled = Callable[[], bool]


class Turn:
    """Waits on partitions until something is settled, or the time is over."""

    def __init__(self, partitions: list[Partition], settled: Settled) -> None:
        self._partitions = partitions
        self._settled = settled
        self._done: asyncio.Future[bool] | None = None

    def wake(self, partition: Partition) -> None:
        if self._done is not None and not self._done.done() and self._settled():
            self._done.set_result(True)

    async def over(self, timeout_ms: int) -> bool:
        """Whether it was settled in time."""
        if self._settled():
            return True
        if timeout_ms <= 0:
            return False
        self._done = asyncio.get_running_loop().create_future()
        for each in self._partitions:
            each.waiting.add(self)
        try:
            return await asyncio.wait_for(self._done, timeout_ms / 1000)
        except TimeoutError:
            return self._settled()
        finally:
            for each in self._partitions:
                each.waiting.discard(self)
