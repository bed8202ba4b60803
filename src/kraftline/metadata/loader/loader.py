"""The loader: one task that turns what the log commits into images, and tells the publishers.

It is the only writer of the image. Everything reaches it through one queue, in order; it yields
to the event loop in between, but never in the middle of a publication.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from time import perf_counter_ns
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kraftline.errors import KraftlineError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import ConfigFilter
from kraftline.metadata.loader.batch_loader import BatchLoader
from kraftline.metadata.loader.batches import BatchDecoder, MetadataBatch
from kraftline.metadata.loader.catch_up import CatchUpGate
from kraftline.metadata.loader.complete_delta import complete_delta
from kraftline.metadata.loader.fault_handling import FatalFault, FaultHandler, MetadataFault
from kraftline.metadata.loader.manifests import (
    UNKNOWN_LEADER,
    LeaderAndEpoch,
    LogDeltaManifest,
    Manifest,
    SnapshotManifest,
)
from kraftline.metadata.loader.metrics import LoaderMetrics
from kraftline.metadata.loader.publisher import MetadataPublisher
from kraftline.metadata.loader.publishers import PublisherRefused, Publishers
from kraftline.metadata.loader.snapshot_source import Snapshot, id_of, load_snapshot
from kraftline.records.batch import Batch
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.storage.names import format_snapshot

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")
# How long the loader keeps the event loop to itself.
_SLICE_NS = 10_000_000
_RETRY_SECONDS = 0.1


class LoaderClosed(KraftlineError):
    """The loader takes nothing any more."""


class _Event(NamedTuple):
    work: Callable[[], Coroutine[Any, Any, None]]
    done: asyncio.Future[None]


class MetadataLoader:
    """A listener of the metadata log. Start it within a running event loop, or use it as an async
    context manager; everything is called on that loop.

    `high_watermark` gives the first offset that is not committed, None while it is not known.
    After a fatal fault it does nothing more; `failure` says what it was, and `stopped` waits for
    that or for the end.
    """

    def __init__(
        self,
        *,
        high_watermark: Callable[[], int | None],
        faults: FaultHandler,
        metrics: LoaderMetrics | None = None,
        known_config: ConfigFilter | None = None,
    ) -> None:
        self.metrics = LoaderMetrics() if metrics is None else metrics
        self.image: MetadataImage = EMPTY
        self.leader: LeaderAndEpoch = UNKNOWN_LEADER
        self.failure: FatalFault | None = None
        # Awaited before a publication: what would take its publisher long can be done elsewhere.
        self.prepare: Callable[[MetadataDelta], Awaitable[None]] | None = None
        self._handler = faults
        self._known_config = known_config
        self._gate = CatchUpGate(high_watermark)
        self._publishers = Publishers(self)
        self._batches = BatchLoader(self._publish_delta, self, known_config=known_config)
        self._decoder = BatchDecoder()
        self._queue: deque[_Event] = deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._initializing = False
        self._closing = False
        self._slice_end = 0

    # What the log tells. Each returns when it has been handled, so that a log that waits never
    # has more under way than one call; it raises only what stopped the loader.

    async def handle_commit(self, batches: Iterable[Batch]) -> None:
        """These batches are committed: one publication for all of them, unless transactions
        divide them."""
        await self._enqueue(lambda: self._commit(map(self._decoder.decode, batches)))

    async def handle_decoded_commit(self, batches: Iterable[MetadataBatch]) -> None:
        """The same for batches whose records are known already: a controller's own."""
        await self._enqueue(lambda: self._commit(iter(batches)))

    async def handle_load_snapshot(self, snapshot: Snapshot) -> None:
        """Everything before the snapshot's end is what the snapshot says."""
        await self._enqueue(lambda: self._load_snapshot(snapshot))

    async def handle_leader_change(self, leader_id: int | None, epoch: int) -> None:
        await self._enqueue(lambda: self._change_leader(LeaderAndEpoch(leader_id, epoch)))

    async def install_publishers(self, publishers: Sequence[MetadataPublisher]) -> None:
        """Add publishers at the end of the chain, in this order; PublisherRefused if a name is
        taken. Each first gets one delta with everything, once the loader has caught up."""
        await self._enqueue(lambda: self._install(publishers))

    async def remove_and_close_publisher(self, publisher: MetadataPublisher) -> None:
        """Take a publisher out of the chain and close it; PublisherRefused if it is not there."""
        await self._enqueue(lambda: self._publishers.remove(publisher))

    async def drained(self) -> None:
        """Return once everything that is in the queue now has been handled."""
        await self._enqueue(_nothing)

    @property
    def last_applied_offset(self) -> int:
        """Where the last image ends that all publishers have had; -1 before the first."""
        return self.metrics.last_applied_offset

    @property
    def caught_up(self) -> bool:
        return self._gate.is_open

    @property
    def in_transaction(self) -> bool:
        """Whether the log, as far as it was loaded, ends inside a metadata transaction."""
        return self._batches.transactions.open is not None

    @property
    def publishers(self) -> tuple[str, ...]:
        """Names of those who get updates, in order."""
        return self._publishers.active

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="metadata-loader")

    def begin_shutdown(self) -> None:
        """Take nothing new; what is in the queue is still handled."""
        self._closing = True
        self._arrived.set()

    async def close(self) -> None:
        """Handle what is in the queue, close the publishers, and end."""
        self.begin_shutdown()
        if self._task is not None:
            await asyncio.wait([self._task])
        self._cancel_retry()
        while self._queue:
            _finish(self._queue.popleft(), LoaderClosed("the metadata loader is closed"))
        await self._publishers.close()

    async def stopped(self) -> None:
        """Return when the loader has ended; raise the fatal fault if that was why."""
        if self._task is not None:
            await asyncio.wait([self._task])
        if self.failure is not None:
            raise self.failure

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def handle(self, fault: MetadataFault) -> None:
        """Count a fault before its handler decides."""
        if fault.publisher is None:
            self.metrics.load_faults += 1
        else:
            self.metrics.publish_faults += 1
        self._handler.handle(fault)

    # The queue.

    def _enqueue(
        self, work: Callable[[], Coroutine[Any, Any, None]], *, first: bool = False
    ) -> asyncio.Future[None]:
        done = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            done.set_exception(self.failure)
        elif self._closing:
            done.set_exception(LoaderClosed("the metadata loader is closed"))
        else:
            event = _Event(work, done)
            if first:
                self._queue.appendleft(event)
            else:
                self._queue.append(event)
            self._arrived.set()
        return done

    async def _run(self) -> None:
        while True:
            if not self._queue:
                if self._closing:
                    return
                self._arrived.clear()
                await self._arrived.wait()
                continue
            event = self._queue.popleft()
            self._slice_end = perf_counter_ns() + _SLICE_NS
            try:
                await event.work()
            except FatalFault as fatal:
                self._stop(fatal, event)
                return
            except PublisherRefused as error:
                _finish(event, error)
            except Exception as error:
                # Nothing above lets one through: going on would be guessing.
                fault = MetadataFault("Unhandled fault in MetadataLoader", error)
                self._stop(FatalFault("metadata loader", fault), event)
                return
            else:
                _finish(event)

    def _stop(self, fatal: FatalFault, event: _Event) -> None:
        self.failure = fatal
        self._cancel_retry()
        _finish(event, fatal)
        while self._queue:
            _finish(self._queue.popleft(), fatal)

    async def _turns(self, steps: Iterator[_T]) -> _T | None:
        """Run steps to the end, the event loop having its turn now and then; the last one."""
        last: _T | None = None
        for step in steps:
            last = step
            if perf_counter_ns() > self._slice_end:
                await asyncio.sleep(0)
                self._slice_end = perf_counter_ns() + _SLICE_NS
        return last

    # Events, in the order in which they came.

    async def _commit(self, batches: Iterator[MetadataBatch]) -> None:
        try:
            await self._turns(map(self._load, batches))
            await self._prepare()
            self._batches.flush()
        except FatalFault:
            raise
        except Exception as error:
            # Batches that cannot be read; a fault in a record has been handled where it was.
            offset = self.image.offset
            self.handle(
                MetadataFault(
                    "Unhandled fault in MetadataLoader#handleCommit. Last image offset was "
                    f"{offset}",
                    error,
                    offset=offset,
                )
            )

    async def _prepare(self) -> None:
        delta = self._batches.gathered
        if self.prepare is not None and delta is not None and self._gate.is_open:
            await self.prepare(delta)

    def _load(self, batch: MetadataBatch) -> None:
        metrics = self.metrics
        for control in batch.controls:
            if isinstance(control.message, KRaftVersionRecord):
                metrics.set_kraft_version(control.message.kraft_version)
        metrics.batch_processing_ns.add(self._batches.load(batch))
        metrics.batch_sizes.add(len(batch.records))

    async def _load_snapshot(self, snapshot: Snapshot) -> None:
        if id_of(snapshot).end_offset == 0:
            return  # what formatting left: a controller writes it to the log, if it is to count
        metrics = self.metrics
        metrics.handled_snapshots += 1
        name = format_snapshot(id_of(snapshot))
        _logger.info(
            "handleLoadSnapshot(%s): incrementing HandleLoadSnapshotCount to %d.",
            name,
            metrics.handled_snapshots,
        )
        delta = MetadataDelta(self.image, self._known_config)
        try:
            manifest = await self._turns(load_snapshot(delta, snapshot, self))
            assert manifest is not None
            _logger.info(
                "handleLoadSnapshot(%s): generated a metadata delta between offset %d and this "
                "snapshot in %d us.",
                name,
                self.image.offset,
                manifest.elapsed_ns // 1000,
            )
            image = delta.apply(manifest.provenance)
            self._batches.reset(image)
            if snapshot.kraft_version:
                metrics.set_kraft_version(snapshot.kraft_version)
            self._publish(delta, image, manifest)
        except FatalFault:
            raise
        except Exception as error:
            last = id_of(snapshot).end_offset - 1
            self.handle(
                MetadataFault(
                    "Unhandled fault in MetadataLoader#handleLoadSnapshot. Snapshot offset was "
                    f"{last}",
                    error,
                    offset=last,
                )
            )

    async def _change_leader(self, leader: LeaderAndEpoch) -> None:
        self.leader = self._batches.leader = leader
        self.metrics.controller_id = -1 if leader.leader_id is None else leader.leader_id
        self._publishers.change_controller(leader)

    async def _install(self, publishers: Sequence[MetadataPublisher]) -> None:
        self._publishers.add(publishers)
        self._schedule_initialize(0)

    # Publications.

    def _publish_delta(
        self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest
    ) -> None:
        self._publish(delta, image, manifest)

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self.image = image
        where = "SNAPSHOT" if isinstance(manifest, SnapshotManifest) else "LOG_DELTA"
        if not self._lets_through(f"maybePublishMetadata({where})"):
            return
        started = perf_counter_ns()
        self._publishers.publish(delta, image, manifest)
        metrics = self.metrics
        metrics.publications += 1
        metrics.publication_ns.add(perf_counter_ns() - started)
        metrics.applied(image)
        if self._publishers.waiting:
            self._schedule_initialize(0)

    def _lets_through(self, where: str) -> bool:
        image = self.image
        return self._gate.is_open or self._gate.lets_through(
            where, image.offset, image.features.metadata_version
        )

    def _schedule_initialize(self, delay: float) -> None:
        """One is enough; an earlier one takes the place of a later one. Once due it is next,
        before all that is in the queue."""
        self._cancel_retry()
        if self._initializing or self._closing:
            return
        if delay:
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(delay, self._schedule_initialize, 0)
        else:
            self._initializing = True
            # Nobody waits for it; what stops the loader is seen by the next who does.
            self._enqueue(self._initialize, first=True).add_done_callback(_look_away)

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    async def _initialize(self) -> None:
        self._initializing = False
        if not self._publishers.waiting:
            return
        if not self._lets_through("initializeNewPublishers"):
            self._schedule_initialize(_RETRY_SECONDS)
            return
        started = perf_counter_ns()
        image = self.image
        try:
            delta = await self._turns(complete_delta(image, self._known_config))
        except Exception as error:
            self.handle(MetadataFault("Unhandled error initializing new publishers", error))
            return
        assert delta is not None
        manifest = SnapshotManifest(image.provenance, perf_counter_ns() - started)
        await self._publishers.initialize(delta, image, manifest, self.leader)
        # Kafka's says so only after the next commit, though its publishers are there as well.
        self.metrics.applied(image)


async def _nothing() -> None:
    pass


def _finish(event: _Event, error: KraftlineError | None = None) -> None:
    if event.done.done():
        return  # whoever waited was cancelled
    if error is None:
        event.done.set_result(None)
    else:
        event.done.set_exception(error)


def _look_away(done: asyncio.Future[None]) -> None:
    if not done.cancelled():
        done.exception()
