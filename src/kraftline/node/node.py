"""A node: broker and controller in one process, put together and taken apart.

Order of a start: the settings are checked, addresses and directories are taken, the metadata log is
opened and replayed, the controller is active, logs are loaded, the broker's publishers have had the
first image, it registers and is unfenced; only then do its listeners take connections. Whatever
goes wrong on the way, everything that was taken is given back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kraftline.broker.assignments import DirectoryAssignments
from kraftline.broker.broker import Broker
from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.groups.coordinator import GroupCoordinator
from kraftline.broker.coordinators.transactions.coordinator import TransactionCoordinator
from kraftline.broker.cordoned import cordoned_of
from kraftline.broker.dynamic_configs import DynamicConfigs
from kraftline.broker.lifecycle import Lifecycle
from kraftline.broker.meters import RequestMeters
from kraftline.broker.partitions import Partitions
from kraftline.broker.producer_ids import ProducerIds
from kraftline.broker.quotas import ClientQuotas
from kraftline.broker.registration_tracker import RegistrationTracker
from kraftline.broker.registry import controller_modules
from kraftline.broker.requests import Requests
from kraftline.config.effective import Config
from kraftline.config.node_settings import check_supported, node_settings
from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.loader import (
    MetadataLoader,
    RoleFaultHandler,
    SnapshotEmitter,
    SnapshotGenerator,
    SnapshotsDisabled,
)
from kraftline.node.addresses import (
    Address,
    controller_listeners,
    endpoints_of_voter,
    limits_of,
    registered_listeners,
    take_address,
)
from kraftline.node.directories import Directories, take_directories
from kraftline.node.faults import Faults
from kraftline.node.logs import NodeLogs, to_the_end
from kraftline.node.metadata_log import metadata_log_settings
from kraftline.node.operation import open_operation
from kraftline.node.registration import registration_of
from kraftline.node.security import Security
from kraftline.node.standalone import format_if_new, python_config
from kraftline.node.topics import create_topic
from kraftline.raft import EmbeddedLog
from kraftline.server.server import Listener

if TYPE_CHECKING:
    from ssl import SSLContext

    from kraftline.node.thread import NodeThread
    from kraftline.operation.http import OperationListener
    from kraftline.operation.sources import Sources

_logger = logging.getLogger(__name__)
_WATCH_SECONDS = 0.5


class StoppedEarly(KraftlineError):
    """A node was stopped before it served."""


class Node:
    """`async with Node() as node:`, or `await node.start()` and `await node.stop()`; a plain
    `with Node() as node:` runs it in a thread of its own.

    Without a configuration it has a free port and a temporary directory, which is gone when it
    has stopped; a mapping has settings beside that, by Kafka's names. With a `Config` everything is
    as that says, and the directories are formatted already. `failed` waits for what keeps a node
    that runs from going on, and raises it.
    """

    def __init__(self, config: Config | Mapping[str, object] | None = None) -> None:
        self._is_from_python = not isinstance(config, Config)
        self._temporary: str | None = None
        if not isinstance(config, Config):
            config, self._temporary = python_config(config)
        self.config = config
        self.settings = node_settings(config)
        check_supported(config)
        self.security = Security(config, self.settings)
        self.node_id = self.settings.node_id
        self.addresses: list[Address] = []
        self.controller_addresses: list[Address] = []
        self.listeners: list[Listener] = []
        self.controller_listeners: list[Listener] = []
        self.requests = RequestMeters()
        self.faults = Faults(self)
        self.operation: OperationListener | None = None
        self.log: EmbeddedLog
        self.loader: MetadataLoader
        # What can end a node, asked now and then.
        self._failures: list[Callable[[], KraftlineError | None]] = []
        self._logs = NodeLogs(config, self.node_id)
        self._held: AsyncExitStack | None = None
        self._starting: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._thread: NodeThread | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect: host and port of the first listener, as others are told."""
        first = registered_listeners(self.settings, self.addresses)[0]
        return f"[{first.host}]:{first.port}" if ":" in first.host else f"{first.host}:{first.port}"

    async def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        """Return once it can be used; TopicRefused says why there is none."""
        await create_topic(self.broker, name, partitions, configs or {})

    @property
    def partitions(self) -> int:
        return len(self.broker.partitions)

    async def start(self) -> None:
        """Return once clients are served. KraftlineError or OSError says why not; StoppedEarly
        that somebody stopped it before that."""
        self._is_stopped = False
        async with AsyncExitStack() as held:
            self._starting = starting = asyncio.create_task(self._start(held))
            failing = asyncio.create_task(self.failed())
            try:
                # What fails in another task would be waited for in vain.
                await asyncio.wait((starting, failing), return_when=asyncio.FIRST_COMPLETED)
                if self._is_stopped:
                    raise StoppedEarly("the node was stopped while it started")
                if not starting.done():
                    failing.result()
                starting.result()
            finally:
                self._starting = None
                starting.cancel()
                failing.cancel()
                await asyncio.wait((starting, failing))
            self._held = held.pop_all()

    async def stop(self) -> None:
        """In order: nothing new is taken, everything is flushed, the marker of a clean stop is
        written. Whoever waits for a start is told at once."""
        if self._starting is not None:
            self._is_stopped = True
            self._starting.cancel()
        held, self._held = self._held, None
        if held is not None:
            await held.aclose()

    async def failed(self) -> None:
        """Never returns: it raises, when there is what."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            problem = self.failure()
            if problem is not None:
                raise problem

    def failure(self) -> KraftlineError | None:
        """What keeps the node from going on."""
        return next(filter(None, (ask() for ask in self._failures)), None)

    async def _start(self, held: AsyncExitStack) -> None:
        self.addresses, self.listeners = [], []
        self._logs = NodeLogs(self.config, self.node_id)
        self.controller_addresses, self.controller_listeners = [], []
        self._failures = []
        self._tls = self._contexts()
        if self._is_from_python:
            await self._format(held)
        listeners = self.settings.listeners
        for endpoints, taken in (
            (listeners.brokers, self.addresses),
            (listeners.controllers, self.controller_addresses),
        ):
            for endpoint in endpoints:
                address = take_address(endpoint)
                held.callback(address.channel.close)
                taken.append(address)
        self.operation = await open_operation(self.settings.metrics, held)
        directories = take_directories(self.settings, held.enter_context(ExitStack()))
        held.push_async_callback(self._close_logs)
        for path, reason in directories.unreadable.items():
            _logger.error("%s is offline: %s", path, reason)
        self.cluster_id = directories.cluster_id
        await self._lead(directories, held)
        await self._load(directories)
        await self._serve(directories, held)

    async def _format(self, held: AsyncExitStack) -> None:
        """Directories of a node that a program made are ready without a word."""
        if self._temporary is not None:
            os.mkdir(self._temporary, 0o700)
            held.push_async_callback(asyncio.to_thread, shutil.rmtree, self._temporary)
        await to_the_end(lambda: format_if_new(self.config))

    async def _lead(self, directories: Directories, held: AsyncExitStack) -> None:
        """The metadata log is open and replayed, and the controller decides."""
        self.log = log = await EmbeddedLog.open(
            directories.metadata,
            node_id=self.node_id,
            settings=metadata_log_settings(self.config),
            endpoints=endpoints_of_voter(self.settings, self.controller_addresses),
            is_voter=bool(self.config.texts("controller.quorum.voters")),
            lock=directories.locks[directories.metadata],
        )
        held.push_async_callback(log.close)
        self._failures.append(lambda: log.failure)
        self._snapshots = SnapshotsDisabled()
        self.loader = loader = MetadataLoader(
            high_watermark=lambda: log.view.end_offset,
            faults=RoleFaultHandler(fatal=True, action=self._snapshots.on_loading_fault),
        )
        self._failures.append(lambda: loader.failure)
        loader.start()
        held.push_async_callback(loader.close)
        await log.register(loader, quick=True).caught_up()
        if loader.failure is not None:
            raise loader.failure
        self.controller = Controller(
            log, loader.image, _now, config=self.config, cluster_id=self.cluster_id
        )
        held.push_async_callback(self.controller.close)
        await self.controller.activate(
            read_bootstrap(directories.metadata),
            controller_listeners(self.settings, self.controller_addresses),
            in_transaction=loader.in_transaction,
        )
        _logger.info(
            "controller %d is active in epoch %d, with metadata up to offset %d",
            self.node_id,
            log.epoch,
            log.end_offset - 1,
        )

    async def _load(self, directories: Directories) -> None:
        """Partitions are open as the metadata has them."""
        await self._logs.open(directories, self.loader.image)
        self._failures.append(self._logs.failure)
        cache = MetadataCache()
        by_id = dict(zip(directories.logs.values(), self._logs.all, strict=True))
        partitions = Partitions(
            self.node_id, by_id, self._logs.config_of, self.config, len(directories.unreadable)
        )
        partitions.cordoned = frozenset(cordoned_of(self.config, directories.logs))
        self._tracker = RegistrationTracker(self.node_id)
        self._dynamic = DynamicConfigs(BrokerConfigs(self.config, self.node_id))
        self._emitter = SnapshotEmitter(self.log)
        snapshots = SnapshotGenerator(
            self._emitter,
            RoleFaultHandler("snapshot generation", fatal=False),
            max_bytes=self.config.whole("metadata.log.max.record.bytes.between.snapshots"),
            max_interval_ms=self.config.whole("metadata.log.max.snapshot.interval.ms"),
            disabled=self._snapshots,
        )
        authorizer = self.security.authorizer
        quotas = ClientQuotas(self.config, _now)
        groups = GroupCoordinator(self.config, cache, partitions, _now)
        producer_ids = ProducerIds(
            self.controller, self.node_id, lambda: cache.image.cluster.broker_epoch(self.node_id)
        )
        transactions = TransactionCoordinator(
            self.config, cache, partitions, groups, producer_ids, _now
        )
        self.loader.prepare = partitions.prepare
        await self.loader.install_publishers(
            [
                cache,
                partitions,
                groups.shards,
                transactions.shards,
                self._dynamic,
                quotas,
                *(() if authorizer is None else (authorizer,)),
                self._tracker,
                DirectoryAssignments(self.controller, partitions),
                snapshots,
            ]
        )
        self.broker = Broker(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            config=self.config,
            cache=cache,
            partitions=partitions,
            controller=self.controller,
            groups=groups,
            transactions=transactions,
            clock=_now,
            authorizer=authorizer,
            quotas=quotas,
        )

    async def _serve(self, directories: Directories, held: AsyncExitStack) -> None:
        """The cluster knows this broker and has unfenced it; clients may come."""
        for address in self.controller_addresses:
            listener = self._listener(address, Requests(self.broker, controller_modules()))
            held.push_async_callback(listener.stop)
            await listener.start()
            self.controller_listeners.append(listener)
        requests = Requests(self.broker, quotas=self.broker.quotas)
        for address in self.addresses:
            listener = self._listener(address, requests)
            held.push_async_callback(listener.stop)
            self.listeners.append(listener)
        self.lifecycle = Lifecycle(
            self.controller,
            registration_of(
                self.settings,
                self.cluster_id,
                registered_listeners(self.settings, self.addresses),
                tuple(directories.logs.values()),
                self._logs.previous_epochs(),
            ),
            lambda: self.loader.last_applied_offset,
            self.config.whole("broker.heartbeat.interval.ms"),
            registration_timeout_ms=self.config.whole("initial.broker.registration.timeout.ms"),
            directory_timeout_ms=self.config.whole("log.dir.failure.timeout.ms"),
            cordoned=cordoned_of(self._dynamic.running, directories.logs),
        )
        self._failures.append(lambda: self.lifecycle.failure)
        held.push_async_callback(
            self.lifecycle.shut_down,
            is_controlled=self.config["controlled.shutdown.enable"] is True,
        )
        self._listen_to_what_happens()
        self._dynamic.follow(lambda config: self._reconfigure(config, directories))
        await self.lifecycle.start()
        for listener in self.listeners:
            await listener.start()
        if self.operation is not None:
            self.operation.serve(self._sources(directories))

    def _reconfigure(self, config: Config, directories: Directories) -> None:
        """What changes without a restart, beside logs."""
        cordoned = cordoned_of(config, directories.logs)
        self.broker.partitions.cordoned = frozenset(cordoned)
        self.lifecycle.cordon(cordoned)
        self.broker.verifies_transactions = bool(
            config["transaction.partition.verification.enable"]
        )
        for logs in self._logs.all:
            logs.keep_producers(config.whole("producer.id.expiration.ms"))
        self.broker.partitions.cleaner_threads.reconfigure(config)
        self.broker.groups.consumer.follow(config)
        settings = node_settings(config)
        for listener in self.listeners:
            listener.limits = limits_of(config, settings, listener.name)

    def _listen_to_what_happens(self) -> None:
        """Whatever the controller has to know of this broker reaches its lifecycle."""
        lifecycle, partitions = self.lifecycle, self.broker.partitions
        self._tracker.register_again = lifecycle.register_again
        partitions.on_directory_failure = lifecycle.directory_failed
        for identity, logs in partitions.logs.items():
            if logs.disk.failure is not None:  # before anybody listened
                lifecycle.directory_failed(identity)

    def _sources(self, directories: Directories) -> Sources:
        from kraftline.operation.sources import Sources

        return Sources(
            broker=self.broker,
            controller=self.controller,
            lifecycle=self.lifecycle,
            loader=self.loader,
            snapshots=self._emitter,
            requests=self.requests,
            listeners=[*self.listeners, *self.controller_listeners],
            failure=self.failure,
            unreadable=len(directories.unreadable),
        )

    def _contexts(self) -> dict[str, SSLContext]:
        """Of the listeners that speak TLS, by name."""
        listeners = self.settings.listeners
        everybody = (*listeners.brokers, *listeners.controllers)
        secured = [each.name for each in everybody if each.is_tls]
        if not secured:
            return {}
        from kraftline.node.tls import tls_context  # only for those who use it

        return {name: tls_context(self.config, name) for name in secured}

    def _listener(self, address: Address, requests: Requests) -> Listener:
        endpoint = address.endpoint
        limits = limits_of(self.config, self.settings, endpoint.name)
        handle = self.security.handle(endpoint, limits, requests, self.broker)
        return Listener(
            endpoint.name,
            endpoint.host,
            address.port,
            self.faults.around(self.requests.around(handle)),
            limits=self.security.limits(endpoint, limits),
            tls=self._tls.get(endpoint.name),
            channel=address.channel,
        )

    async def _close_logs(self) -> None:
        lifecycle = getattr(self, "lifecycle", None)
        await self._logs.close(-1 if lifecycle is None else lifecycle.broker_epoch)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def __enter__(self) -> NodeThread:
        from kraftline.node.thread import NodeThread  # only for those who use it

        thread = NodeThread(self)
        thread.start()
        self._thread = thread
        return thread

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()


def _now() -> int:
    return time.time_ns() // 1_000_000
