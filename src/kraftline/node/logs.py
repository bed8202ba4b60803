"""The logs of a node: opened as the metadata has them, closed with the mark of a clean stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from kraftline.broker.future_logs import promote_abandoned
from kraftline.config.effective import Config
from kraftline.errors import KraftlineError
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.node.directories import Directories
from kraftline.storage.log import LogConfig, Logs
from kraftline.storage.log.config import log_config

_logger = logging.getLogger(__name__)


class NodeLogs:
    """`all` are those of each log directory, in the order of `Directories.logs`."""

    def __init__(self, config: Config, node_id: int) -> None:
        self.all: list[Logs] = []
        self._config = config
        self._node_id = node_id

    async def open(self, directories: Directories, image: MetadataImage) -> None:
        def load() -> None:
            for line in promote_abandoned(directories.logs, image.topics, self._node_id):
                _logger.warning("%s", line)
            for path in directories.logs:
                opened = Logs.open(
                    path,
                    lambda topic: self.config_of(image, topic),
                    threads=self._config.whole("num.recovery.threads.per.data.dir"),
                    lock=directories.locks[path],
                    producer_expiration_ms=self._config.whole("producer.id.expiration.ms"),
                )
                self.all.append(opened)

        await to_the_end(load)
        for logs in self.all:
            for note in logs.notes:
                _logger.warning("%s", note)

    async def close(self, broker_epoch: int) -> None:
        for logs in self.all:
            try:
                await asyncio.to_thread(logs.close, broker_epoch)
            except KraftlineError as problem:
                # A failed disk: there is no marker, and that is right.
                _logger.error("%s", problem)

    def config_of(self, image: MetadataImage, topic: str) -> LogConfig:
        """What a topic's log is kept by."""
        of = image.configs.of
        dynamic = {**of(BROKER, ""), **of(BROKER, str(self._node_id))}
        return log_config(of(TOPIC, topic), self._config, dynamic)

    def previous_epochs(self) -> Sequence[int | None]:
        """What clean stops left in the directories, None where there was none."""
        return [each.previous_broker_epoch if each.was_clean else None for each in self.all]

    def failure(self) -> KraftlineError | None:
        """A node without any directory cannot go on."""
        if not all(each.disk.failure is not None for each in self.all):
            return None
        paths = ", ".join(each.path for each in self.all)
        return KraftlineError(f"Shutdown broker because all log dirs in {paths} have failed")


async def to_the_end(work: Callable[[], object]) -> None:
    """In a thread, which nobody can cancel: whoever gives up waits for it all the same."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise
