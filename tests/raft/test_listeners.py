"""Every listener gets every committed record, in order, whenever it comes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kraftline.raft import CommittedBatches, EmbeddedLog, LogSettings
from kraftline.storage.names import SnapshotId
from tests.raft.logs import NO_OP, Keeper, assert_healthy, formatted, opened, run, topic

SMALL = LogSettings(segment_bytes=2000, clean_interval_ms=0, delete_delay_ms=0)
# Nothing is kept in memory: everything comes from the disk.
FORGETFUL = LogSettings(segment_bytes=2000, clean_interval_ms=0, recent_bytes=0)


async def write(log: EmbeddedLog, count: int, start: int = 0) -> list[bytes]:
    written = [topic(n) for n in range(start, start + count)]
    for each in written:
        log.append([each])
    await log.commit()
    return written


async def snapshot(log: EmbeddedLog, values: list[bytes]) -> SnapshotId:
    id = SnapshotId(log.high_watermark, log.epoch)
    assert await log.create_snapshot(id, [values], last_contained_log_timestamp=1) is not None
    return id


@pytest.mark.parametrize("settings", [SMALL, FORGETFUL], ids=["memory", "disk"])
def test_early_and_late_listeners_get_the_same(tmp_path: Path, settings: LogSettings) -> None:
    async def work() -> None:
        early, late = Keeper(), Keeper()
        async with opened(formatted(tmp_path), settings) as log:
            first = log.register(early)
            written = await write(log, 200)
            await first.caught_up()
            written += await write(log, 100, 200)
            second = log.register(late)
            await asyncio.gather(first.caught_up(), second.caught_up())
            assert early.values == late.values == written
            assert "leader" in early.told
            assert late.told.count("leader") == 1

    run(work())


def test_late_listener_gets_the_snapshot_and_then_the_tail(tmp_path: Path) -> None:
    async def work() -> None:
        data = formatted(tmp_path)
        async with opened(data, SMALL) as log:
            for _ in range(50):
                log.append([NO_OP])
            state = await write(log, 50)
            id = await snapshot(log, state)  # a state is less than its log
            state += await write(log, 100, 100)
            assert await log.delete_before(id)
            assert log.log_start_offset == id.end_offset
            late = Keeper()
            await log.register(late).caught_up()
            assert late.told[0] == f"snapshot {id.end_offset}"
            assert late.values == state
        assert_healthy(data, payloads=False)
        async with opened(data, SMALL) as log:
            again = Keeper()
            await log.register(again).caught_up()
            assert again.told[0] == f"snapshot {id.end_offset}"
            assert again.values == state

    run(work())


def test_quick_listener_begins_with_the_newest_snapshot(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(formatted(tmp_path), SMALL) as log:
            written = await write(log, 10)
            id = await snapshot(log, written[5:])
            written += await write(log, 10, 10)
            quick, thorough = Keeper(), Keeper()
            await log.register(quick, quick=True).caught_up()
            await log.register(thorough).caught_up()
            assert quick.told[0] == f"snapshot {id.end_offset}"
            assert quick.values == written[5:]
            assert "commit" in thorough.told[0]
            assert thorough.values == written

    run(work())


def test_listener_that_falls_behind_the_log_start_gets_a_snapshot(tmp_path: Path) -> None:
    class Slow(Keeper):
        def __init__(self) -> None:
            super().__init__()
            self.go_on = asyncio.Event()

        async def handle_commit(self, batches: CommittedBatches) -> None:
            await super().handle_commit(batches)
            await self.go_on.wait()

    async def work() -> None:
        async with opened(formatted(tmp_path), SMALL) as log:
            slow = Slow()
            registration = log.register(slow)
            await asyncio.sleep(0.05)
            assert slow.told == ["commit"]
            state = await write(log, 200)
            id = await snapshot(log, state)
            await log.delete_before(id)
            slow.go_on.set()
            await registration.caught_up()
            assert slow.told[:3] == ["commit", "leader", f"snapshot {id.end_offset}"] or (
                slow.told[:2] == ["commit", f"snapshot {id.end_offset}"]
            )
            assert slow.values == state

    run(work())


def test_slow_listener_holds_up_nobody(tmp_path: Path) -> None:
    class Stuck(Keeper):
        async def handle_commit(self, batches: CommittedBatches) -> None:
            await asyncio.sleep(3600)

    async def work() -> None:
        log = await EmbeddedLog.open(formatted(tmp_path), node_id=1, settings=SMALL)
        stuck, quick = log.register(Stuck()), Keeper()
        written = await write(log, 50)
        await log.register(quick).caught_up()
        assert quick.values == written
        stuck.task.cancel()
        await log.close()

    run(work())


def test_failing_listener_gets_no_more_and_says_why(tmp_path: Path) -> None:
    class Failing(Keeper):
        async def handle_commit(self, batches: CommittedBatches) -> None:
            raise ArithmeticError("no")

    async def work() -> None:
        async with opened(formatted(tmp_path), SMALL) as log:
            registration = log.register(Failing())
            with pytest.raises(ArithmeticError):
                await registration.caught_up()
            await write(log, 5)
            assert isinstance(registration.failure, ArithmeticError)

    run(work())


def test_listener_may_append(tmp_path: Path) -> None:
    class Answering(Keeper):
        log: EmbeddedLog

        async def handle_leader_change(self, leader_id: int | None, epoch: int) -> None:
            await self.log.write([b"first of my epoch"])
            await super().handle_leader_change(leader_id, epoch)

    async def work() -> None:
        async with opened(formatted(tmp_path), SMALL) as log:
            keeper = Answering()
            keeper.log = log
            registration = log.register(keeper)
            await registration.caught_up()
            await registration.caught_up()
            assert keeper.values == [b"first of my epoch"]

    run(work())


def test_unregistered_listener_hears_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(formatted(tmp_path), SMALL) as log:
            keeper = Keeper()
            registration = log.register(keeper)
            await registration.caught_up()
            await log.unregister(registration)
            await write(log, 5)
            assert keeper.values == []

    run(work())
