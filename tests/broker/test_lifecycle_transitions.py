"""Each transition of a broker's state, and what does not lead to one."""

from __future__ import annotations

import asyncio

import pytest

from kraftline.broker.lifecycle import BrokerState, DirectoryNotTold, Lifecycle, NotRegistered
from tests.broker.scripted import EPOCH, Script, lifecycle, run, until
from tests.controller.broker_stories import directory


class Recording:
    """A broker whose states are written down."""

    def __init__(self, script: Script, *, interval_ms: int = 60_000) -> None:
        self.applied = EPOCH
        self.life = lifecycle(script, lambda: self.applied, interval_ms=interval_ms)
        self.states = [self.life.state]
        become = self.life._become

        def recorded(state: BrokerState) -> None:
            if state is not self.life.state:
                self.states.append(state)
            become(state)

        self.life._become = recorded  # type: ignore[method-assign]  # to see what it is told

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.states]


def test_not_running_becomes_starting_when_it_is_started() -> None:
    async def main() -> None:
        script = Script()
        recording = Recording(script)
        assert recording.life.state is BrokerState.NOT_RUNNING
        recording.applied = 0
        starting = asyncio.create_task(recording.life.start())
        await until(lambda: bool(script.registered))
        assert recording.names == ["NOT_RUNNING", "STARTING"]
        await _end(starting, recording.life)

    run(main())


def test_starting_stays_until_the_broker_has_read_its_registration() -> None:
    async def main() -> None:
        script = Script()
        recording = Recording(script)
        recording.applied = EPOCH - 1
        starting = asyncio.create_task(recording.life.start())
        await until(lambda: len(script.beats) > 3)
        assert recording.life.state is BrokerState.STARTING
        recording.applied = EPOCH
        await starting
        await recording.life.shut_down()

    run(main())


def test_starting_becomes_recovery_when_it_is_caught_up() -> None:
    async def main() -> None:
        script = Script()
        recording = Recording(script)
        ready = asyncio.Event()
        starting = asyncio.create_task(recording.life.start(ready.wait))  # type: ignore[arg-type]  # whatever it returns
        await until(lambda: recording.life.state is BrokerState.RECOVERY)
        await until(lambda: len(script.beats) >= 2)
        assert all(each.want_fence for each in script.beats)
        ready.set()
        await starting
        await recording.life.shut_down()

    run(main())


def test_recovery_stays_while_the_controller_keeps_the_broker_fenced() -> None:
    async def main() -> None:
        script = Script()
        script.keeps_fenced = True
        recording = Recording(script)
        starting = asyncio.create_task(recording.life.start())
        await until(lambda: sum(not each.want_fence for each in script.beats) > 3)
        assert recording.names[-1] == "RECOVERY"
        script.keeps_fenced = False
        await starting
        assert recording.names[-1] == "RUNNING"
        await recording.life.shut_down()

    run(main())


def test_recovery_becomes_running_when_the_broker_is_unfenced() -> None:
    async def main() -> None:
        recording = Recording(Script())
        await recording.life.start()
        assert recording.names == ["NOT_RUNNING", "STARTING", "RECOVERY", "RUNNING"]
        await recording.life.shut_down()

    run(main())


def test_running_stays_running_when_the_broker_is_fenced() -> None:
    async def main() -> None:
        script = Script()
        recording = Recording(script, interval_ms=5)
        await recording.life.start()
        script.keeps_fenced = True
        count = len(script.beats)
        await until(lambda: len(script.beats) > count + 3)
        assert recording.life.state is BrokerState.RUNNING
        await recording.life.shut_down()

    run(main())


def test_running_becomes_pending_controlled_shutdown_and_asks_at_once() -> None:
    async def main() -> None:
        script = Script()
        script.keeps = True
        recording = Recording(script, interval_ms=60_000)
        await recording.life.start()
        stopping = asyncio.create_task(recording.life.shut_down())
        await until(lambda: script.beats[-1].want_shut_down)
        assert recording.life.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
        script.keeps = False
        await stopping

    run(main())


def test_pending_controlled_shutdown_becomes_shutting_down_when_the_broker_may_go() -> None:
    async def main() -> None:
        recording = Recording(Script())
        await recording.life.start()
        await recording.life.shut_down()
        assert recording.names[-2:] == ["PENDING_CONTROLLED_SHUTDOWN", "SHUTTING_DOWN"]

    run(main())


def test_a_broker_that_was_unregistered_leaves_without_being_let_go() -> None:
    async def main() -> None:
        script = Script()
        recording = Recording(script)
        await recording.life.start()
        script.beats_fail = True
        await recording.life.shut_down()
        assert recording.names[-2:] == ["PENDING_CONTROLLED_SHUTDOWN", "SHUTTING_DOWN"]

    run(main())


@pytest.mark.parametrize("state", [BrokerState.STARTING, BrokerState.RECOVERY])
def test_a_broker_that_does_not_run_yet_shuts_down_without_asking(state: BrokerState) -> None:
    async def main() -> None:
        script = Script()
        script.keeps_fenced = True
        recording = Recording(script)
        recording.applied = 0 if state is BrokerState.STARTING else EPOCH
        starting = asyncio.create_task(recording.life.start())
        await until(lambda: recording.life.state is state and bool(script.beats))
        await recording.life.shut_down()
        assert recording.names[-2:] == [state.name, "SHUTTING_DOWN"]
        assert not any(each.want_shut_down for each in script.beats)
        # Whoever waits for the start is told at once.
        with pytest.raises((NotRegistered, asyncio.CancelledError)):
            await starting

    run(main())


def test_a_broker_that_never_started_is_shutting_down_at_once() -> None:
    async def main() -> None:
        recording = Recording(Script())
        await recording.life.shut_down()
        assert recording.names == ["NOT_RUNNING", "SHUTTING_DOWN"]

    run(main())


def test_a_controller_that_never_answers_ends_the_registration_in_time() -> None:
    async def main() -> None:
        script = Script()
        script.is_silent = True
        life = lifecycle(script, timeout_ms=50)
        with pytest.raises(NotRegistered, match="unable to register with the controller quorum"):
            await life.start()
        await life.shut_down()

    run(main())


def test_a_broker_that_runs_may_take_its_time_to_register_again() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=5, timeout_ms=500)
        await life.start()
        script.refusals = 5
        life.register_again()
        await until(lambda: len(script.registered) == 7)
        assert life.state is BrokerState.RUNNING
        assert life.failure is None
        await life.shut_down()

    run(main())


def test_a_directory_that_failed_is_told_with_every_heartbeat() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=5, directory_timeout_ms=200)
        await life.start()
        count = len(script.beats)
        life.directory_failed(directory(1))
        life.directory_failed(directory(1, 1))
        await until(lambda: len(script.beats) > count + 100)
        both = (directory(1), directory(1, 1))
        assert all(each.offline_log_dirs == both for each in script.beats[count + 2 :])
        assert life.failure is None  # it was heard
        await life.shut_down()

    run(main())


def test_a_broker_that_cannot_tell_of_a_failed_directory_in_time_does_not_go_on() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=5, directory_timeout_ms=50)
        await life.start()
        script.beats_fail = True
        life.directory_failed(directory(1))
        await until(lambda: life.failure is not None)
        assert isinstance(life.failure, DirectoryNotTold)
        assert str(directory(1)) in str(life.failure)
        await life.shut_down(is_controlled=False)

    run(main())


def test_cordoned_directories_are_told_from_recovery_on() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, cordoned=(directory(1),))
        await life.start()
        told = [each.cordoned_log_dirs for each in script.beats]
        assert told[0] is None
        assert set(told[1:]) == {(directory(1),)}
        await life.shut_down()

    run(main())


def test_however_much_changes_one_request_is_under_way() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=1)
        await life.start()
        for number in range(20):
            life.directory_failed(directory(1, number))
            life.cordon([directory(2, number)])
            life.register_again()
            life.fence(number % 2 == 0)
            await asyncio.sleep(0)
        await until(lambda: script.beats[-1].cordoned_log_dirs == (directory(2, 19),))
        assert script.most_under_way == 1
        await life.shut_down()

    run(main())


async def _end(starting: asyncio.Task[None], life: Lifecycle) -> None:
    await life.shut_down()
    starting.cancel()
    await asyncio.wait([starting])
    if not starting.cancelled():
        starting.exception()
