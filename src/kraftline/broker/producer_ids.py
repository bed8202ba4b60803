"""New producer ids: taken from a block that the controller gave this broker.

The next block is fetched when the current one runs low, so that hardly anyone ever waits for it;
ids that are left when the node stops are never used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.schema.api.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode

_logger = logging.getLogger(__name__)

# The share of a block after which the next one is fetched.
_PREFETCH: Final = 0.9


class NoProducerIds(KraftlineError):
    """The controller gave out none."""


class ProducerIds:
    """`broker_epoch` gives that of the running registration."""

    def __init__(
        self, controller: Controller, node_id: int, broker_epoch: Callable[[], int]
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._current = range(0)
        self._following: range | None = None
        self._used = 0
        self._fetching: asyncio.Task[None] | None = None

    async def take(self) -> int:
        """An id that no producer had before; NoProducerIds where the controller gives none."""
        while self._used >= len(self._current):
            if self._following is None:
                await asyncio.shield(self._fetch())
            if self._used >= len(self._current) and self._following is not None:
                self._current, self._following, self._used = self._following, None, 0
        found = self._current[self._used]
        self._used += 1
        if self._used >= len(self._current) * _PREFETCH and self._following is None:
            self._fetch()
        return found

    def _fetch(self) -> asyncio.Task[None]:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._allocate(), name="producer-ids")
            self._fetching.add_done_callback(self._fetched)
        return self._fetching

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled() and task.exception() is not None:
            _logger.warning("no producer ids: %s", task.exception())

    async def _allocate(self) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch()
        )
        response: AllocateProducerIdsResponse = await self._controller.allocate_producer_ids(
            request
        )
        if response.error_code != ErrorCode.NONE:
            raise NoProducerIds(ErrorCode(response.error_code).name)
        first = response.producer_id_start
        self._following = range(first, first + response.producer_id_len)
