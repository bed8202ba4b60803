"""The rounds of upkeep, over real logs and with short intervals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.broker import upkeep
from kraftline.broker.upkeep import Upkeep
from kraftline.node.standalone import standalone_config
from kraftline.storage.checkpoints import read_offset_checkpoint
from kraftline.storage.log import LogConfig, Logs
from tests.broker.stories import batch

QUICK = dict.fromkeys(
    (
        "log.flush.scheduler.interval.ms",
        "log.retention.check.interval.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "producer.id.expiration.check.interval.ms",
    ),
    "20",
) | {"log.initial.task.delay.ms": "0"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_REMOVAL_SECONDS", 0.02)


def kept(logs: Logs, done: Callable[[], bool]) -> None:
    """Let upkeep run until something is done."""

    async def work() -> None:
        rounds = Upkeep((logs,), standalone_config(QUICK))
        rounds.start(lambda failed: None)
        end = time.monotonic() + 20
        while not done():
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        await rounds.stop()

    asyncio.run(work())


def checkpoint(directory: Path, name: str) -> dict[str, int]:
    path = directory / name
    if not path.exists():
        return {}
    return {f"{e.topic}-{e.partition}": e.offset for e in read_offset_checkpoint(path)}


def filled(directory: Path, config: LogConfig) -> Logs:
    logs = Logs.open(directory, lambda topic: config)
    log = logs.create("t", 0)
    for _ in range(4):
        log.append(batch(when=time.time_ns() // 1_000_000), 0)
    log.update_high_watermark(3)
    return logs


def test_flush_ms_is_kept_and_checkpointed(tmp_path: Path) -> None:
    logs = filled(tmp_path, LogConfig(flush_ms=50))
    kept(logs, lambda: checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {"t-0": 4})
    kept(logs, lambda: checkpoint(tmp_path, "replication-offset-checkpoint") == {"t-0": 3})
    logs.release()


def test_without_flush_ms_nothing_is_flushed(tmp_path: Path) -> None:
    logs = filled(tmp_path, LogConfig())
    kept(logs, lambda: checkpoint(tmp_path, "replication-offset-checkpoint") == {"t-0": 3})
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") in ({}, {"t-0": 0})
    logs.release()


def test_a_start_that_was_moved_is_checkpointed(tmp_path: Path) -> None:
    logs = filled(tmp_path, LogConfig())
    log = logs.get("t", 0)
    assert log is not None
    log.advance_start(2)
    kept(logs, lambda: checkpoint(tmp_path, "log-start-offset-checkpoint") == {"t-0": 2})
    logs.release()


def test_what_is_over_goes_first_by_name_and_then_for_good(tmp_path: Path) -> None:
    logs = filled(tmp_path, LogConfig(retention_ms=1, file_delete_delay_ms=100))
    log = logs.get("t", 0)
    assert log is not None
    log.update_high_watermark(4)
    first = tmp_path / "t-0" / f"{0:020d}.log"
    kept(logs, lambda: not first.exists())
    assert log.start_offset == 4
    kept(logs, lambda: not list((tmp_path / "t-0").glob("*.deleted")))
    logs.release()


def test_one_round_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Logs) -> int:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Logs, "flush_due", failing)
    logs = filled(tmp_path, LogConfig())
    kept(logs, lambda: checkpoint(tmp_path, "replication-offset-checkpoint") == {"t-0": 3})
    logs.release()


def test_a_directory_that_fails_is_told_of_in_the_loop_and_left_alone(tmp_path: Path) -> None:
    logs = filled(tmp_path, LogConfig())
    told: list[Logs] = []

    async def work() -> None:
        rounds = Upkeep((logs,), standalone_config(QUICK))
        rounds.start(told.append)
        await asyncio.to_thread(logs.disk.lost, OSError(5, "Input/output error"), "testing")
        await asyncio.sleep(0.1)
        await rounds.stop()

    asyncio.run(work())
    assert told == [logs]
    logs.release()
