"""A broker's life with a controller that says what the test wants."""

from __future__ import annotations

import asyncio

import pytest

from kraftline.broker.lifecycle import BrokerState, NotRegistered
from tests.broker.scripted import EPOCH, Script, lifecycle, run, until
from tests.controller.broker_stories import directory


def test_it_runs_when_it_is_unfenced_and_goes_when_it_may() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script)
        states = [life.state]
        await life.start()
        states.append(life.state)
        assert life.broker_epoch == EPOCH
        await life.shut_down()
        states.append(life.state)
        assert [each.name for each in states] == ["NOT_RUNNING", "RUNNING", "SHUTTING_DOWN"]
        assert [each.want_shut_down for each in script.beats][-2:] == [True, True]
        assert script.most_under_way == 1

    run(main())


def test_it_wants_to_be_fenced_until_it_is_ready() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script)
        seen = []

        async def recover() -> None:
            await asyncio.sleep(0.05)
            seen.append((life.state, all(each.want_fence for each in script.beats)))

        await life.start(recover)
        assert seen == [(BrokerState.RECOVERY, True)]
        assert not script.beats[-1].want_fence
        await life.shut_down()

    run(main())


def test_it_reads_up_to_its_registration_first_and_then_tells_of_cordoned_directories() -> None:
    async def main() -> None:
        script = Script()
        offset = iter(range(EPOCH - 3, EPOCH + 100))
        life = lifecycle(script, lambda: next(offset), cordoned=(directory(1),))
        await life.start()
        told = [each.cordoned_log_dirs for each in script.beats]
        assert told == [None, None, None, None, (directory(1),), (directory(1),)]
        await life.shut_down()

    run(main())


def test_what_changes_is_told_at_once() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=60_000)
        await life.start()
        count = len(script.beats)
        life.directory_failed(directory(1))
        await until(lambda: len(script.beats) == count + 1)
        assert script.beats[-1].offline_log_dirs == (directory(1),)
        life.cordon([directory(2)])
        await until(lambda: script.beats[-1].cordoned_log_dirs == (directory(2),))
        life.register_again()
        await until(lambda: len(script.registered) == 2)
        await life.shut_down()
        assert script.most_under_way == 1

    run(main())


def test_heartbeats_go_on_by_the_interval() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script, interval_ms=20)
        await life.start()
        count = len(script.beats)
        await asyncio.sleep(0.3)
        assert 5 <= len(script.beats) - count <= 15
        await life.shut_down()

    run(main())


def test_a_refused_registration_is_tried_again() -> None:
    async def main() -> None:
        script = Script()
        script.refusals = 2
        life = lifecycle(script, interval_ms=10)
        await life.start()
        assert len(script.registered) == 3
        await life.shut_down()

    run(main())


def test_it_gives_up_when_it_cannot_register_in_time() -> None:
    async def main() -> None:
        script = Script()
        script.refusals = 1_000
        life = lifecycle(script, interval_ms=10, timeout_ms=60)
        with pytest.raises(NotRegistered, match="DUPLICATE_BROKER_REGISTRATION"):
            await life.start()
        await life.shut_down()
        assert life.state is BrokerState.SHUTTING_DOWN

    run(main())


def test_without_control_it_leaves_without_a_word() -> None:
    async def main() -> None:
        script = Script()
        life = lifecycle(script)
        await life.start()
        await life.shut_down(is_controlled=False)
        assert not any(each.want_shut_down for each in script.beats)

    run(main())
