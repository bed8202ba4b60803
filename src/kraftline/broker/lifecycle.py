"""The broker's life in the cluster: it registers, sends heartbeats, and may serve once it is
unfenced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kraftline.controller import brokers
from kraftline.controller.controller import Controller
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest
from kraftline.schema.api.broker_registration import BrokerRegistrationRequest


class Lifecycle:
    """`applied` gives the offset of the last metadata that this broker has acted on."""

    def __init__(
        self,
        controller: Controller,
        registration: BrokerRegistrationRequest,
        applied: Callable[[], int],
        interval_ms: int,
    ) -> None:
        self.broker_epoch = -1
        self._controller = controller
        self._registration = registration
        self._applied = applied
        self._interval = interval_ms / 1000
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register, and return once the broker is unfenced."""
        response = await self._controller.run(
            lambda image, now: brokers.register(
                image, self._registration, self._controller.log.end_offset
            )
        )
        self.broker_epoch = response.broker_epoch
        while await self._beat():
            await asyncio.sleep(0.005)
        self._task = asyncio.create_task(self._go_on(), name="broker-lifecycle")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._beat()

    async def _beat(self) -> bool:
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied(),
        )
        response = await self._controller.run(lambda image, now: brokers.heartbeat(image, request))
        return response.is_fenced
