"""Those who follow the log: each gets everything that is committed, in order, without a gap."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from kraftline.errors import NotKafka
from kraftline.raft.reading import CommittedBatches, DiskCursor
from kraftline.raft.segment_log import LogView
from kraftline.raft.snapshots import Snapshots
from kraftline.storage.files import vanished
from kraftline.storage.snapshot_file import SnapshotReader

_logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Called one call at a time; the next one waits until this one has come back, so a slow
    listener holds up nobody but itself."""

    async def handle_commit(self, batches: CommittedBatches) -> None:
        """These batches are committed; they begin where the last call ended."""

    async def handle_load_snapshot(self, snapshot: SnapshotReader) -> None:
        """Everything before the snapshot's end is replaced by its content. It is closed when
        this returns."""

    async def handle_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Who leads. Told once everything committed before the epoch has been handled."""


class Feed(Protocol):
    """What a registration needs of a log."""

    snapshots: Snapshots
    node_id: int
    epoch: int
    epoch_start_offset: int

    @property
    def view(self) -> LogView: ...
    def recent(self, offset: int) -> CommittedBatches | None:
        """Committed batches from the offset on, if they are still in memory."""


class Registration:
    """A listener on its way through the log; `next_offset` is the first that it has not had."""

    def __init__(self, feed: Feed, listener: Listener, *, quick: bool) -> None:
        self.listener = listener
        self.next_offset = -1
        self.failure: BaseException | None = None
        self._feed = feed
        self._quick = quick
        self._told_leader = False
        self._stopping = False
        self._advanced = asyncio.Event()
        self._progress = asyncio.Condition()
        self._cursor: DiskCursor | None = None
        self.task = asyncio.create_task(self._run(), name="raft-listener")

    def advance(self) -> None:
        """The high watermark has moved."""
        self._advanced.set()

    async def caught_up(self, offset: int | None = None) -> None:
        """Return once everything before the offset (None: committed by now) has been handled,
        and the leader is known. Raises what the listener raised."""
        target = self._feed.view.end_offset if offset is None else offset
        async with self._progress:
            await self._progress.wait_for(
                lambda: self.task.done() or (self.next_offset >= target and self._told_leader)
            )
        if self.failure is not None:
            raise self.failure

    async def stop(self) -> None:
        """Call the listener no more. A call under way is waited for."""
        self._stopping = True
        self._advanced.set()
        if asyncio.current_task() is not self.task:
            await asyncio.wait([self.task])

    async def _run(self) -> None:
        try:
            while not self._stopping:
                self._advanced.clear()
                if not await self._step() and not self._stopping:
                    await self._advanced.wait()
        except Exception as error:
            self.failure = error
            _logger.exception(
                "a listener of the metadata log failed after offset %d and gets no more",
                self.next_offset - 1,
            )
        finally:
            if self._cursor is not None:
                self._cursor.close()
            async with self._progress:
                self._progress.notify_all()

    async def _step(self) -> bool:
        """One call of the listener; False if there is nothing to tell."""
        view = self._feed.view
        if self.next_offset < view.start_offset:
            # At the beginning, or because what it would get next has been dropped meanwhile.
            await self._begin(view)
        elif not self._told_leader and self.next_offset > self._feed.epoch_start_offset:
            await self.listener.handle_leader_change(self._feed.node_id, self._feed.epoch)
            self._told_leader = True
        elif self.next_offset < view.end_offset:
            batches = await self._next_batches(view)
            if batches is None:
                return True  # its segment has just been dropped: look again
            await self.listener.handle_commit(batches)
            self.next_offset = batches.end_offset
        else:
            return False
        async with self._progress:
            self._progress.notify_all()
        return True

    async def _begin(self, view: LogView) -> None:
        """With a snapshot where the log does not reach back to its beginning, or where the
        listener wants to be there quickly; else with the first offset."""
        known = self._feed.snapshots
        needed = self._quick or view.start_offset > 0 or self.next_offset >= 0
        id = known.newest if needed else None
        if id is None:
            # Formatting may have left a state from before the first offset.
            id = next((each for each in known.ids if each.end_offset == 0), None)
        if id is not None:
            try:
                snapshot = known.open(id)
            except NotKafka as error:
                if vanished(error) and id not in known.ids:
                    return  # a newer one has taken its place
                raise
            with snapshot:
                if id.end_offset > 0 or any(True for _ in snapshot.batches()):
                    await self.listener.handle_load_snapshot(snapshot)
        self.next_offset = 0 if id is None else id.end_offset

    async def _next_batches(self, view: LogView) -> CommittedBatches | None:
        batches = self._feed.recent(self.next_offset)
        if batches is not None:
            return batches
        if self._cursor is None or self._cursor.next_offset != self.next_offset:
            if self._cursor is not None:
                self._cursor.close()
            self._cursor = DiskCursor(self.next_offset)
        try:
            return await asyncio.to_thread(self._cursor.read, view)
        except NotKafka as error:
            if vanished(error) and self.next_offset < self._feed.view.start_offset:
                return None
            raise
