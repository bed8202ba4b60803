"""A controller that says to a broker what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kraftline.broker.lifecycle import Lifecycle
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid

EPOCH = 40


class Script:
    """A controller that unfences whoever has read offset 40, and lets go on the second asking.

    `refusals` registrations are refused; while `beats_fail` heartbeats are, `is_silent` nothing is
    answered, `keeps_fenced` nobody is unfenced, `keeps` nobody may go."""

    def __init__(self) -> None:
        self.registered: list[BrokerRegistrationRequest] = []
        self.beats: list[BrokerHeartbeatRequest] = []
        self.refusals = 0
        self.beats_fail = False
        self.is_silent = False
        self.keeps_fenced = False
        self.keeps = False
        self.under_way = 0
        self.most_under_way = 0

    async def register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        async with self._one():
            self.registered.append(request)
            if self.is_silent:
                await asyncio.Event().wait()
            if self.refusals:
                self.refusals -= 1
                code = ErrorCode.DUPLICATE_BROKER_REGISTRATION
                return BrokerRegistrationResponse(error_code=code)
            return BrokerRegistrationResponse(broker_epoch=EPOCH)

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        async with self._one():
            self.beats.append(request)
            if self.beats_fail:
                return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
            is_caught_up = request.current_metadata_offset >= EPOCH
            asked = sum(each.want_shut_down for each in self.beats)
            return BrokerHeartbeatResponse(
                is_caught_up=is_caught_up,
                is_fenced=request.want_fence or not is_caught_up or self.keeps_fenced,
                should_shut_down=asked > 1 and not self.keeps,
            )

    def _one(self) -> _OneAtATime:
        return _OneAtATime(self)


class _OneAtATime:
    def __init__(self, script: Script) -> None:
        self._script = script

    async def __aenter__(self) -> None:
        self._script.under_way += 1
        self._script.most_under_way = max(self._script.most_under_way, self._script.under_way)
        await asyncio.sleep(0.001)

    async def __aexit__(self, *problem: object) -> None:
        self._script.under_way -= 1


def lifecycle(
    script: Script,
    applied: Callable[[], int] = lambda: EPOCH,
    *,
    interval_ms: int = 60_000,
    timeout_ms: int = 60_000,
    directory_timeout_ms: int = 60_000,
    cordoned: tuple[Uuid, ...] = (),
) -> Lifecycle:
    return Lifecycle(
        script,  # type: ignore[arg-type]  # all that is asked of a controller
        BrokerRegistrationRequest(broker_id=1),
        applied,
        interval_ms,
        registration_timeout_ms=timeout_ms,
        directory_timeout_ms=directory_timeout_ms,
        cordoned=cordoned,
    )


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work

    asyncio.run(main())


async def until(is_so: Callable[[], bool]) -> None:
    """Return once something is so; `run` gives up after a while."""
    while not is_so():
        await asyncio.sleep(0.001)
