"""The metadata log of a node that is the only voter: append, flush, commit, tell.

What is flushed is committed: the high watermark is the end of it. All methods belong to the event
loop on which the log was opened, and none of them waits there for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from kraftline.raft.claim import Claim
from kraftline.raft.encoding import encode_batch
from kraftline.raft.group_commit import GroupCommit, Worker
from kraftline.raft.listener import Listener, Registration
from kraftline.raft.opening import Opened, open_files
from kraftline.raft.problems import Backlogged, LogClosed, LogFailed, SnapshotRefused
from kraftline.raft.reading import CommittedBatches, batch_at
from kraftline.raft.recovery import Recovery
from kraftline.raft.segment_log import Encoded, LogView
from kraftline.raft.settings import LogSettings
from kraftline.records.control import build_control_batch
from kraftline.schema.control.voters_record import Endpoint, VotersRecord
from kraftline.schema.types import Message
from kraftline.storage.files import Path
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import now

_logger = logging.getLogger(__name__)


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where records were put: not committed yet, see `EmbeddedLog.commit`."""

    base_offset: int
    end_offset: int
    epoch: int
    size: int


class EmbeddedLog:
    """Open with `await EmbeddedLog.open(...)`, end with `await log.close()`; an async context
    manager too. `recovery` says what was found when it was opened."""

    def __init__(
        self, opened: Opened, settings: LogSettings, clock: Callable[[], int], worker: Worker
    ) -> None:
        self.directory = opened.directory
        self.node_id = opened.node_id
        self.epoch = opened.epoch
        self.epoch_start_offset = opened.epoch_start_offset
        self.recovery: Recovery = opened.recovery
        self.snapshots = opened.snapshots
        self.settings = settings
        self._claim = opened.claim
        self._files = opened.files
        self._epochs = opened.epochs
        self._controls = opened.controls
        self._clock = clock
        self._worker = worker
        self._commits = GroupCommit(opened.files, opened.view, settings, worker, self._advance)
        self._loop = asyncio.get_running_loop()
        self._registrations: list[Registration] = []
        self._deleted: dict[str, asyncio.TimerHandle] = {}
        self._snapshotting = asyncio.Lock()
        self._cleaning = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._cleaner = self._loop.create_task(self._clean_now_and_then(), name="raft-clean")

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        node_id: int,
        settings: LogSettings | None = None,
        endpoints: Sequence[Endpoint] = (),
        is_voter: bool = True,
        lock: DirectoryLock | None = None,
        clock: Callable[[], int] = now,
    ) -> Self:
        """Open the metadata log in a formatted log directory, and become its leader.

        `endpoints` are this node's controller listeners, for a dynamic quorum; none: as they
        were. `is_voter` says that the node is the only static voter; if not, the log must have
        its voters. `lock` is the directory's lock where the caller holds it; without, it is taken.
        LogRefused (or NotKafka where another process owns the directory) says why not.
        """
        settings = settings or LogSettings()
        folder = os.fspath(directory)
        claim = Claim(folder, lock)
        worker = Worker()
        opening = worker.submit(
            lambda: open_files(
                folder, node_id, settings, endpoints, claim, clock(), is_voter=is_voter
            )
        )

        def give_up(done: asyncio.Future[Opened]) -> None:
            if not done.cancelled() and done.exception() is None:
                done.result().files.release()
            claim.release()
            worker.stop()

        try:
            opened = await asyncio.shield(opening)
        except BaseException:
            # When only the caller gave up, the thread still has the directory.
            if opening.done():
                give_up(opening)
            else:
                opening.add_done_callback(give_up)
            raise
        for line in opened.recovery.lines():
            _logger.warning("%s", line)
        return cls(opened, settings, clock, worker)

    @property
    def view(self) -> LogView:
        """What is committed, as files."""
        return self._commits.view

    @property
    def log_start_offset(self) -> int:
        return self._commits.view.start_offset

    @property
    def high_watermark(self) -> int:
        """Everything before this offset is durable."""
        return self._commits.view.end_offset

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._commits.next_offset

    @property
    def failure(self) -> LogFailed | None:
        """Why the log takes nothing any more, if so."""
        return self._commits.failure

    @property
    def kraft_version(self) -> int:
        return self._controls.kraft_version

    @property
    def voters(self) -> VotersRecord | None:
        """The voters of a dynamic quorum; None with kraft.version 0."""
        return self._controls.voters

    def append(self, values: Sequence[bytes], *, timestamp: int | None = None) -> Appended:
        """Put records, as the bytes of their values, at the end of the log, as one batch: all
        of them take effect or none. They are committed once `commit` of their end returns.

        AppendTooLarge, Backlogged, LogFailed, LogClosed: nothing was appended.
        """
        self._check()
        if not values:
            raise ValueError("there are no records to append")
        # Before the work of encoding, which a large batch may have to repeat otherwise.
        self._commits.check_room(sum(map(len, values)), len(values))
        time = self._clock() if timestamp is None else timestamp
        data = encode_batch(values, self.end_offset, time, self.epoch)
        return self._appended(self._commits.add(data, len(values), time))

    def append_control(
        self, messages: Sequence[Message], *, timestamp: int | None = None
    ) -> Appended:
        """Put control records at the end of the log, as one batch."""
        self._check()
        if not messages:
            raise ValueError("there are no records to append")
        time = self._clock() if timestamp is None else timestamp
        data = build_control_batch(
            messages, base_offset=self.end_offset, timestamp=time, partition_leader_epoch=self.epoch
        )
        batch = self._commits.add(data, len(messages), time)
        self._controls.add(batch.base_offset, messages)
        return self._appended(batch)

    async def commit(self, end_offset: int | None = None) -> None:
        """Return once everything before the offset (None: appended by now) is committed."""
        target = self.end_offset if end_offset is None else end_offset
        if target > self.end_offset:
            raise ValueError(f"offset {target} has not been appended (end {self.end_offset})")
        await self._commits.wait(target)

    async def room(self) -> None:
        """Return when there is room for more: after Backlogged."""
        await self._commits.room()

    async def write(self, values: Sequence[bytes], *, timestamp: int | None = None) -> Appended:
        """Append when there is room, and return when it is committed."""
        while True:
            await self._commits.room()
            try:
                appended = self.append(values, timestamp=timestamp)
            except Backlogged:
                continue
            await self._commits.wait(appended.end_offset)
            return appended

    def register(self, listener: Listener, *, quick: bool = False) -> Registration:
        """Tell a listener everything that is committed, from the beginning: the newest snapshot
        first where the log does not start at offset 0, or always with `quick` (as a restarting
        Kafka node does), then all batches."""
        if self._closing is not None:
            raise self._closed()
        registration = Registration(self, listener, quick=quick)
        self._registrations.append(registration)
        return registration

    async def unregister(self, registration: Registration) -> None:
        """Call the listener no more."""
        if registration in self._registrations:
            self._registrations.remove(registration)
        await registration.stop()

    def recent(self, offset: int) -> CommittedBatches | None:
        """Committed batches from the offset on, if they are still in memory."""
        return self._commits.recent(offset)

    async def create_snapshot(
        self,
        id: SnapshotId,
        groups: Iterable[Sequence[bytes]],
        *,
        last_contained_log_timestamp: int,
    ) -> str | None:
        """Write a snapshot of the state before `id.end_offset`: record values in groups, each of
        which stays in one batch. Returns its path; None where it is there already or too old.

        `groups` is iterated on another thread.
        """
        async with self._snapshotting:
            self._check()
            view = self.view
            if id in self.snapshots.ids or id.end_offset < view.start_offset:
                return None
            if id.end_offset > view.end_offset:
                raise SnapshotRefused(
                    f"a snapshot up to offset {id.end_offset}, but only what is before "
                    f"{view.end_offset} is committed"
                )
            epoch = self._epochs.epoch_of(id.end_offset - 1)
            if epoch != id.epoch:
                raise SnapshotRefused(
                    f"a snapshot of epoch {id.epoch}, but offset {id.end_offset - 1} was written "
                    f"in epoch {epoch}"
                )
            kraft_version, voters = self._controls.at(id.end_offset - 1)

            def write() -> str:
                batch = batch_at(view, id.end_offset)
                if batch is not None and batch.base_offset != id.end_offset:
                    raise SnapshotRefused(
                        f"a snapshot up to offset {id.end_offset}, which is inside the batch from "
                        f"{batch.base_offset} to {batch.last_offset}"
                    )
                return self.snapshots.write(
                    id,
                    groups,
                    last_contained_log_timestamp=last_contained_log_timestamp,
                    kraft_version=kraft_version,
                    voters=voters,
                    max_batch_bytes=self.settings.max_batch_bytes,
                )

            path = await asyncio.to_thread(write)
            self.snapshots.add(id)
            return path

    async def clean(self) -> bool:
        """Drop old snapshots and segments by the settings; whether something was dropped. The
        log does this itself every `clean_interval_ms`."""
        async with self._cleaning:
            self._check()
            start = await asyncio.to_thread(
                self.snapshots.expired, self.view, self.settings, self._clock()
            )
            return start is not None and await self._drop_before(start)

    async def delete_before(self, id: SnapshotId) -> bool:
        """Let the log start at a snapshot: older ones go, and segments that end before it.
        False where the snapshot is not there, or the log starts there already."""
        async with self._cleaning:
            self._check()
            return await self._drop_before(id)

    async def close(self) -> None:
        """Flush and close; the directory is left as Kafka leaves it after a clean stop. Waits
        for the calls of listeners that are under way, so it is not for listeners to call."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name="raft-close")
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _check(self) -> None:
        if self._closing is not None:
            raise self._closed()
        if self.failure is not None:
            raise self.failure

    def _closed(self) -> LogClosed:
        return LogClosed(f"{self.directory}: the metadata log is closed")

    def _appended(self, batch: Encoded) -> Appended:
        return Appended(batch.base_offset, batch.end_offset, self.epoch, len(batch.data))

    def _advance(self) -> None:
        for registration in self._registrations:
            registration.advance()

    async def _drop_before(self, id: SnapshotId) -> bool:
        if id not in self.snapshots.ids or not self.log_start_offset < id.end_offset:
            return False

        def drop() -> tuple[list[str], int]:
            paths = self._files.drop_before(id.end_offset)
            self._epochs.cut_start(id.end_offset)
            self._epochs.write(self._files.directory)
            return paths + self.snapshots.drop_before(id), self._files.view().segments[
                0
            ].base_offset

        paths, first = await self._worker.run(drop)
        view = self.view
        closed = tuple(segment for segment in view.closed if segment.base_offset >= first)
        self._commits.view = LogView(id.end_offset, view.end_offset, closed, view.active)
        for path in paths:
            self._deleted[path] = self._loop.call_later(
                self.settings.delete_delay_ms / 1000, self._unlink, path
            )
        _logger.info(
            "the metadata log starts at offset %d now; %d files dropped", id.end_offset, len(paths)
        )
        return True

    def _unlink(self, path: str) -> None:
        self._deleted.pop(path, None)
        self._worker.submit(lambda: _remove(path))

    async def _clean_now_and_then(self) -> None:
        while self.settings.clean_interval_ms > 0:
            await asyncio.sleep(self.settings.clean_interval_ms / 1000)
            try:
                await self.clean()
            except Exception:
                _logger.exception("old parts of the metadata log could not be dropped")

    async def _close(self) -> None:
        self._cleaner.cancel()
        await asyncio.wait([self._cleaner])
        async with self._cleaning, self._snapshotting:
            await self._commits.drain()
            await asyncio.gather(*(each.stop() for each in self._registrations))
            for handle in self._deleted.values():
                handle.cancel()
            try:
                await self._worker.run(self._finish)
            except OSError as error:
                raise self._commits.fail(error) from error
            finally:
                self._claim.release()
                self._worker.stop()

    def _finish(self) -> None:
        try:
            for path in self._deleted:
                _remove(path)
            if self.failure is None:
                self._files.finish()
        finally:
            self._files.release()


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
