"""A broker's life with a controller that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kraftline.broker.lifecycle import BrokerState, Lifecycle, NotRegistered
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid
from tests.controller.broker_stories import directory

_EPOCH = 40


class Script:
    """A controller that unfences whoever has read offset 40, and lets go on the second asking."""

    def __init__(self) -> None:
        self.registered: list[BrokerRegistrationRequest] = []
        self.beats: list[BrokerHeartbeatRequest] = []
        self.refusals = 0
        self.under_way = 0
        self.most_under_way = 0

    async def register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        async with self._one():
            self.registered.append(request)
            if self.refusals:
                self.refusals -= 1
                code = ErrorCode.DUPLICATE_BROKER_REGISTRATION
                return BrokerRegistrationResponse(error_code=code)
            return BrokerRegistrationResponse(broker_epoch=_EPOCH)

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        async with self._one():
            self.beats.append(request)
            is_caught_up = request.current_metadata_offset >= _EPOCH
            asked = sum(each.want_shut_down for each in self.beats)
            return BrokerHeartbeatResponse(
                is_caught_up=is_caught_up,
                is_fenced=request.want_fence or not is_caught_up,
                should_shut_down=asked > 1,
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


def _lifecycle(
    script: Script,
    applied: Callable[[], int] = lambda: _EPOCH,
    *,
    interval_ms: int = 60_000,
    timeout_ms: int = 60_000,
    cordoned: tuple[Uuid, ...] = (),
) -> Lifecycle:
    return Lifecycle(
        script,  # type: ignore[arg-type]  # all that is asked of a controller
        BrokerRegistrationRequest(broker_id=1),
        applied,
        interval_ms,
        registration_timeout_ms=timeout_ms,
        cordoned=cordoned,
    )


def _run(work: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await work

    asyncio.run(main())


def test_it_runs_when_it_is_unfenced_and_goes_when_it_may() -> None:
    async def main() -> None:
        script = Script()
        life = _lifecycle(script)
        states = [life.state]
        await life.start()
        states.append(life.state)
        assert life.broker_epoch == _EPOCH
        await life.shut_down()
        states.append(life.state)
        assert [each.name for each in states] == ["NOT_RUNNING", "RUNNING", "SHUTTING_DOWN"]
        assert [each.want_shut_down for each in script.beats][-2:] == [True, True]
        assert script.most_under_way == 1

    _run(main())


def test_it_wants_to_be_fenced_until_it_is_ready() -> None:
    async def main() -> None:
        script = Script()
        life = _lifecycle(script)
        seen = []

        async def recover() -> None:
            await asyncio.sleep(0.05)
            seen.append((life.state, all(each.want_fence for each in script.beats)))

        await life.start(recover)
        assert seen == [(BrokerState.RECOVERY, True)]
        assert not script.beats[-1].want_fence
        await life.shut_down()

    _run(main())


def test_it_reads_up_to_its_registration_first_and_then_tells_of_cordoned_directories() -> None:
    async def main() -> None:
        script = Script()
        offset = iter(range(_EPOCH - 3, _EPOCH + 100))
        life = _lifecycle(script, lambda: next(offset), cordoned=(directory(1),))
        await life.start()
        told = [each.cordoned_log_dirs for each in script.beats]
        assert told == [None, None, None, None, (directory(1),), (directory(1),)]
        await life.shut_down()

    _run(main())


def test_what_changes_is_told_at_once() -> None:
    async def main() -> None:
        script = Script()
        life = _lifecycle(script, interval_ms=60_000)
        await life.start()
        count = len(script.beats)
        life.directory_failed(directory(1))
        await asyncio.sleep(0.05)
        assert len(script.beats) == count + 1
        assert script.beats[-1].offline_log_dirs == (directory(1),)
        life.cordon([directory(2)])
        await asyncio.sleep(0.05)
        assert script.beats[-1].cordoned_log_dirs == (directory(2),)
        life.register_again()
        await asyncio.sleep(0.05)
        assert len(script.registered) == 2
        await life.shut_down()
        assert script.most_under_way == 1

    _run(main())


def test_heartbeats_go_on_by_the_interval() -> None:
    async def main() -> None:
        script = Script()
        life = _lifecycle(script, interval_ms=20)
        await life.start()
        count = len(script.beats)
        await asyncio.sleep(0.3)
        assert 5 <= len(script.beats) - count <= 15
        await life.shut_down()

    _run(main())


def test_a_refused_registration_is_tried_again() -> None:
    async def main() -> None:
        script = Script()
        script.refusals = 2
        life = _lifecycle(script, interval_ms=10)
        await life.start()
        assert len(script.registered) == 3
        await life.shut_down()

    _run(main())


def test_it_gives_up_when_it_cannot_register_in_time() -> None:
    async def main() -> None:
        script = Script()
        script.refusals = 1_000
        life = _lifecycle(script, interval_ms=10, timeout_ms=60)
        with pytest.raises(NotRegistered, match="DUPLICATE_BROKER_REGISTRATION"):
            await life.start()
        await life.shut_down()
        assert life.state is BrokerState.SHUTTING_DOWN

    _run(main())


def test_without_control_it_leaves_without_a_word() -> None:
    async def main() -> None:
        script = Script()
        life = _lifecycle(script)
        await life.start()
        await life.shut_down(is_controlled=False)
        assert not any(each.want_shut_down for each in script.beats)

    _run(main())
