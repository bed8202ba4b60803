"""Batches on their way to the disk: many appends, one flush, and those who wait for it.

One thread writes, rolls and flushes; everything that waits when it is free goes with one flush.
What is flushed is committed. All else happens on the event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kraftline.raft.problems import AppendTooLarge, Backlogged, LogFailed
from kraftline.raft.reading import CommittedBatches
from kraftline.raft.segment_log import Encoded, LogView, SegmentLog
from kraftline.raft.settings import LogSettings

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")


class Worker:
    """The thread that owns the files."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="raft-log")

    def submit(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.shield(self.submit(work))

    def stop(self) -> None:
        self._pool.shutdown(wait=False)


class GroupCommit:
    """`view` is what is durable, `next_offset` what the next record gets. Once `failure` is set,
    nothing is taken any more: what is on the disk then is not known."""

    def __init__(
        self,
        files: SegmentLog,
        view: LogView,
        settings: LogSettings,
        worker: Worker,
        committed: Callable[[], None],
    ) -> None:
        self.view = view
        self.next_offset = view.end_offset
        self.failure: LogFailed | None = None
        self._files = files
        self._settings = settings
        self._worker = worker
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Encoded] = []
        self._pending_bytes = 0
        self._flushing: asyncio.Future[LogView] | None = None
        self._commits: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticket = itertools.count()
        self._room = asyncio.Event()
        self._room.set()
        self._recent: deque[Encoded] = deque()
        self._recent_bytes = 0

    def check_room(self, size: int, count: int) -> None:
        """Backlogged or AppendTooLarge where a batch of so many bytes cannot be taken now."""
        limit = min(self._settings.max_batch_bytes, self._settings.segment_bytes)
        if size > limit:
            raise AppendTooLarge(
                f"{count} records that belong together make a batch of {size:,} bytes; the most "
                f"is {limit:,}: split what need not take effect at once"
            )
        if self._pending_bytes and self._pending_bytes + size > self._settings.max_pending_bytes:
            self._room.clear()
            raise Backlogged(f"{self._pending_bytes:,} bytes wait for the disk already")

    def add(self, data: bytes, count: int, timestamp: int) -> Encoded:
        """Take a batch of `count` records that begins at `next_offset`."""
        self.check_room(len(data), count)
        batch = Encoded(data, self.next_offset, self.next_offset + count, timestamp)
        self._waiting.append(batch)
        self._pending_bytes += len(data)
        self.next_offset = batch.end_offset
        if self._flushing is None and len(self._waiting) == 1:
            # Not at once: what else is appended in this turn of the loop shares the flush.
            self._loop.call_soon(self._flush)
        return batch

    async def wait(self, end_offset: int) -> None:
        """Return once everything before the offset is durable."""
        if end_offset <= self.view.end_offset:
            return
        if self.failure is not None:
            raise self.failure
        future = self._loop.create_future()
        heapq.heappush(self._commits, (end_offset, next(self._ticket), future))
        await future

    async def room(self) -> None:
        """Return when there is room for more, or the log has failed."""
        await self._room.wait()

    async def drain(self) -> None:
        """Return when nothing is under way any more."""
        while self._flushing is not None or (self._waiting and self.failure is None):
            self._flush()
            if self._flushing is not None:
                await asyncio.wait([self._flushing])
            await asyncio.sleep(0)  # until its callback has run

    def recent(self, offset: int) -> CommittedBatches | None:
        """Durable batches from the offset on, if they are still in memory."""
        recent = self._recent
        if not recent or not recent[0].base_offset <= offset < recent[-1].end_offset:
            return None
        found: deque[bytes] = deque()
        for batch in reversed(recent):
            if batch.base_offset < offset:
                break
            found.appendleft(batch.data)
        return CommittedBatches(found, offset, recent[-1].end_offset)

    def _flush(self) -> None:
        if self._flushing is not None or not self._waiting or self.failure is not None:
            return
        batches, self._waiting = self._waiting, []

        def write_and_sync() -> LogView:
            self._files.write(batches)
            return self._files.sync()

        self._flushing = self._worker.submit(write_and_sync)
        self._flushing.add_done_callback(lambda done: self._flushed(done, batches))

    def _flushed(self, done: asyncio.Future[LogView], batches: list[Encoded]) -> None:
        self._flushing = None
        error = done.exception()
        if error is not None:
            self.fail(error)
            return
        self.view = done.result()
        for batch in batches:
            self._pending_bytes -= len(batch.data)
            self._recent_bytes += len(batch.data)
        self._recent.extend(batches)
        while self._recent_bytes > self._settings.recent_bytes and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popleft().data)
        if self._pending_bytes <= self._settings.max_pending_bytes // 2:
            self._room.set()
        self._flush()
        while self._commits and self._commits[0][0] <= self.view.end_offset:
            _, _, future = heapq.heappop(self._commits)
            if not future.done():
                future.set_result(None)
        self._committed()

    def fail(self, error: BaseException) -> LogFailed:
        """Whether the bytes reached the disk is not known now: nobody is told that they did."""
        failure = LogFailed(
            f"{self._files.directory}: the log cannot be written ({error}). What was not "
            "acknowledged may be lost. Free space or repair the disk, then start again"
        )
        failure.__cause__ = error
        _logger.critical("%s", failure)
        self.failure = failure
        self._waiting.clear()
        for _, _, future in self._commits:
            if not future.done():
                future.set_exception(failure)
        self._commits.clear()
        self._room.set()
        return failure
