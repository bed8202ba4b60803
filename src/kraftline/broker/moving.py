"""Replicas that are moved from one log directory of this broker to another.

A move copies the log into a `-future` directory, in a thread and beside all that goes on, until it
has nearly everything. The rest is copied in one turn of the event loop, in which nobody can append:
then the copy gets the log's name, and the old log goes. Who reads the old files reads on.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from kraftline.broker.partition import Partition
from kraftline.storage.log import LogProblem, Logs, OffsetOutOfRange, PartitionLog

if TYPE_CHECKING:
    from kraftline.broker.partitions import Partitions

_logger = logging.getLogger(__name__)

_CHUNK: Final = 1 << 20
# So little is copied while everybody waits.
_REST: Final = 1 << 16
_PAUSE: Final = 0.05  # seconds, where a flush of the log is under way


class Move:
    """One replica on its way to `target`. `future` is the copy, once it is begun."""

    def __init__(self, partition: Partition, target: Logs) -> None:
        self.partition = partition
        self.target = target
        self.future: PartitionLog | None = None
        self.is_wanted = True

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        end = self.partition.log.end_offset
        return end if self.future is None else max(end - self.future.end_offset, 0)

    def begin(self) -> PartitionLog:
        """An empty copy that begins where the log does. In a thread."""
        log = self.partition.log
        future = self.target.create_future(
            log.topic, log.partition, self.partition.topic_id, log.config
        )
        self.future = future
        future.begin_at(max(log.start_offset, log.segments[0].base_offset))
        return future

    def copy(self, max_bytes: int) -> int:
        """Copy a piece; how many bytes that was."""
        log, future = self.partition.log, self.future
        assert future is not None
        if future.end_offset >= log.end_offset:
            return 0
        data = log.read(future.end_offset, max_bytes).read()
        future.append_copies(memoryview(data))
        return len(data)

    def rest(self) -> int:
        """About how many bytes are still to be copied."""
        log, future = self.partition.log, self.future
        assert future is not None
        if future.end_offset >= log.end_offset:
            return 0
        return log.read(future.end_offset, _REST + 1).length


class Moves:
    """All of a broker's. `bytes_per_second` is what they may copy together."""

    def __init__(self, partitions: Partitions) -> None:
        self.bytes_per_second = math.inf
        self._partitions = partitions
        self._threads = ThreadPoolExecutor(len(partitions.logs), thread_name_prefix="moves")
        self._all: dict[tuple[str, int], Move] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Move]:
        return iter(tuple(self._all.values()))

    def begin(self, partition: Partition, target: Logs) -> None:
        """Move a replica to another directory, instead of wherever it was going before; where it is
        there already, it stays."""
        where = partition.log.topic, partition.log.partition
        under_way = self._all.get(where)
        if under_way is not None:
            if under_way.target is target and under_way.partition is partition:
                return
            under_way.is_wanted = False
            del self._all[where]
        if partition.log.disk is target.disk:
            return
        move = self._all[where] = Move(partition, target)
        task = asyncio.create_task(self._carry_out(move), name=f"move {partition.log.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def resume(self) -> None:
        """Begin those again that were under way when the broker stopped."""
        for logs in self._partitions.logs.values():
            for where in logs.take_futures():
                partition = self._partitions.get(*where)
                if partition is not None and not partition.is_offline:
                    self.begin(partition, logs)

    async def close(self) -> None:
        for move in self._all.values():
            move.is_wanted = False
        await asyncio.gather(*self._tasks)
        await asyncio.to_thread(self._threads.shutdown)

    async def _carry_out(self, move: Move) -> None:
        log = move.partition.log
        where = log.topic, log.partition
        try:
            done = await self._copy_and_swap(move)
            if done:
                _logger.info("%s was moved to %s", log.name, move.target.path)
        except LogProblem as problem:
            _logger.error("%s is not moved to %s: %s", log.name, move.target.path, problem)
            done = False
        if self._all.get(where) is move:
            del self._all[where]
        if not done and move.future is not None and move.target.disk.failure is None:
            try:
                await self._in_thread(partial(move.target.discard, move.future))
            except LogProblem as problem:
                _logger.error("%s", problem)

    async def _copy_and_swap(self, move: Move) -> bool:
        """Whether the copy is the log now."""
        while self._is_wanted(move):
            try:
                await self._in_thread(partial(self._copy, move))
                if self._is_wanted(move) and self._swap(move):
                    return True
            except OffsetOutOfRange:
                # Retention was quicker: what was copied is not the log's any more.
                future, move.future = move.future, None
                if future is not None:
                    await self._in_thread(partial(move.target.discard, future))
            await asyncio.sleep(_PAUSE)
        return False

    async def _in_thread(self, work: partial[None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _is_wanted(self, move: Move) -> bool:
        log = move.partition.log
        here = self._partitions.get(log.topic, log.partition)
        return move.is_wanted and here is move.partition and not here.is_offline

    def _copy(self, move: Move) -> None:
        """Until little is left; in a thread. A flush of all that takes so long that much may have
        come in meanwhile: what is left is what came in while that was copied."""
        future = move.begin() if move.future is None else move.future
        self._copy_most(move)
        future.flush()
        self._copy_most(move)

    def _copy_most(self, move: Move) -> None:
        while self._is_wanted(move) and move.rest() > _REST:
            began = time.monotonic()
            count = move.copy(_CHUNK)
            due = count * len(self._all) / self.bytes_per_second
            spare = due - (time.monotonic() - began)
            if spare > 0:
                time.sleep(min(spare, 1))

    def _swap(self, move: Move) -> bool:
        """The last step, in the event loop: False where there is more to copy than that."""
        partition, future = move.partition, move.future
        assert future is not None
        if partition.is_flushing or move.rest() > _REST:
            return False
        more = True
        while more:  # nobody appends meanwhile
            more = move.copy(_REST) > 0
        log = partition.log
        future.become(log)
        source = next(each for each in self._partitions.logs.values() if each.disk is log.disk)
        # In Kafka's order: a crash in between leaves two logs, never none.
        move.target.adopt(future)
        partition.log = future
        source.delete(log.topic, log.partition)
        self._partitions.moved(partition)
        return True
