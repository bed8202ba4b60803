"""A node: broker and controller in one process, put together and taken apart.

Order of a start: the directories are checked and locked, the metadata log is opened and replayed,
the controller is active, logs are loaded, the broker registers, its publishers have had the first
image, it is unfenced; only then do its listeners take connections.
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Self

from kraftline.broker.broker import Broker
from kraftline.broker.cache import MetadataCache
from kraftline.broker.lifecycle import Lifecycle
from kraftline.broker.partitions import Partitions
from kraftline.broker.requests import Requests
from kraftline.config.effective import Config
from kraftline.controller.activation import activate
from kraftline.controller.controller import Controller
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.directories import check_directories
from kraftline.metadata.features import FEATURES, METADATA_VERSION, MINIMUM
from kraftline.metadata.formatting_config import parse_listener
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.loader import MetadataLoader, RoleFaultHandler
from kraftline.metadata.random_ids import random_uuid
from kraftline.raft import EmbeddedLog
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
)
from kraftline.schema.api.broker_registration import Listener as RegisteredListener
from kraftline.server.server import Limits, Listener
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.log import LogConfig, Logs
from kraftline.storage.log.config import log_config


class Node:
    """`await node.start()`, `await node.stop()`; an async context manager too."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.node_id = config.whole("node.id")
        self.listeners: list[Listener] = []
        self._locks: dict[str, DirectoryLock] = {}
        self._logs: list[Logs] = []

    async def start(self) -> None:
        config = self.config
        directories = tuple(map(os.path.abspath, config.texts("log.dirs")))
        metadata_directory = directories[0]
        found = check_directories(directories, metadata_directory, node_id=self.node_id)
        cluster_id = found.formatted[metadata_directory].cluster_id
        assert cluster_id is not None
        self._locks = {path: DirectoryLock(path) for path in directories}
        self.log = log = await EmbeddedLog.open(
            metadata_directory, node_id=self.node_id, lock=self._locks[metadata_directory]
        )
        self.loader = loader = MetadataLoader(
            high_watermark=lambda: log.view.end_offset,
            faults=RoleFaultHandler(fatal=True),
        )
        loader.start()
        self._registration = log.register(loader, quick=True)
        await self._registration.caught_up()
        self.controller = Controller(log, loader.image, _now)
        bootstrap = read_bootstrap(metadata_directory)
        await self.controller.run(lambda image, now: activate(image, bootstrap))

        logs = {}
        for path in directories:
            identity = found.formatted[path].directory_id
            assert identity is not None
            opened = Logs.open(path, lambda topic: log_config({}, config), lock=self._locks[path])
            logs[identity] = opened
            self._logs.append(opened)
        cache = MetadataCache()
        partitions = Partitions(self.node_id, logs, self._log_config)
        await loader.install_publishers([cache, partitions])

        self.broker = Broker(
            node_id=self.node_id,
            cluster_id=cluster_id,
            config=config,
            cache=cache,
            partitions=partitions,
            controller=self.controller,
            clock=_now,
        )
        requests = Requests(self.broker)
        controllers = set(config.texts("controller.listener.names"))
        named = [parse_listener(each) for each in config.texts("listeners")]
        for each in named:
            if each.name not in controllers:
                self.listeners.append(
                    Listener(each.name, each.host, each.port, requests.handle, limits=Limits())
                )
        for listener in self.listeners:
            await listener.start()
        self.lifecycle = Lifecycle(
            self.controller,
            BrokerRegistrationRequest(
                broker_id=self.node_id,
                cluster_id=cluster_id,
                incarnation_id=random_uuid(),
                listeners=tuple(
                    RegisteredListener(name=each.name, host=each.host, port=each.port)
                    for each in self.listeners
                ),
                features=_features(),
                rack=None,
                log_dirs=tuple(logs),
            ),
            lambda: loader.last_applied_offset,
            config.whole("broker.heartbeat.interval.ms"),
        )
        await self.lifecycle.start()

    async def stop(self) -> None:
        await self.lifecycle.stop()
        for listener in self.listeners:
            await listener.stop()
        await self.loader.close()
        await self.log.close()
        for logs in self._logs:
            logs.close(self.lifecycle.broker_epoch)
        for lock in self._locks.values():
            lock.release()

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

    def _log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        return log_config(image.configs.of(TOPIC, topic), self.config)


def _features() -> tuple[Feature, ...]:
    """What this software supports, as it registers."""
    return tuple(
        Feature(
            name=name,
            min_supported_version=MINIMUM.level if name == METADATA_VERSION else 0,
            max_supported_version=feature.latest_production,
        )
        for name, feature in sorted(FEATURES.items())
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
