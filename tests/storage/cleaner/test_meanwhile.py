"""What happens around a cleaning: reads, deletions, retention, damage, full disks, limits."""

from __future__ import annotations

import errno
import gc
import logging
import os
import threading
from itertools import count
from pathlib import Path

import pytest

from kraftline.storage.checkpoints import CLEANER_OFFSETS
from kraftline.storage.cleaner.choosing import dirt_of
from kraftline.storage.cleaner.cleaner import Cleaner, CleanerSettings, run_thread
from kraftline.storage.cleaner.cleaning import Cleaning
from kraftline.storage.cleaner.offset_map import OffsetMap
from kraftline.storage.cleaner.problems import CleaningAborted
from kraftline.storage.cleaner.throttle import Throttle
from kraftline.storage.log import LogConfig, Logs, PartitionLog, Stopped, log_config
from kraftline.storage.log.partition_log import wall_clock
from tests.storage.cleaner.dirty_logs import CONFIG, DAY, Writer
from tests.storage.cleaner.rounds import clean
from tests.storage.log.logs import (
    NOW,
    Clock,
    assert_healthy,
    log_directory,
    one,
    records_of,
)

SETTINGS = CleanerSettings()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logs(tmp_path: Path, clock: Clock) -> Logs:
    data = log_directory(tmp_path / "data")
    return Logs.open(data, lambda topic: log_config(CONFIG), clock=clock)


def dirty(logs: Logs, topic: str, clock: Clock, *, segments: int = 4) -> PartitionLog:
    log = logs.create(topic, 0)
    writer = Writer(log, clock, 1)
    for _ in range(segments):
        for _ in range(10):
            writer.append(writer.records(8))
        log.roll()
    return log


def names(log: PartitionLog) -> set[str]:
    return {name for name in os.listdir(log.directory) if name.endswith((".cleaned", ".swap"))}


def pausing(
    log: PartitionLog, act: threading.Event, done: threading.Event, at: int = 1
) -> Cleaning:
    """A cleaning that waits at one of its steps until something else is done."""
    steps = count()

    def pace(size: int) -> None:
        if size and next(steps) == at:
            act.set()
            assert done.wait(60)

    return Cleaning(log, dirt_of(log, None, NOW), OffsetMap(2**20, 0.9), NOW, pace=pace)


def in_thread(cleaning: Cleaning) -> tuple[threading.Thread, list[BaseException]]:
    problems: list[BaseException] = []

    def run() -> None:
        try:
            cleaning.run()
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, problems


@pytest.mark.parametrize("step", [1, 4, 6])
def test_a_log_that_is_deleted_while_it_is_cleaned(logs: Logs, clock: Clock, step: int) -> None:
    log = dirty(logs, "t", clock)
    act, done = threading.Event(), threading.Event()
    thread, problems = in_thread(pausing(log, act, done, step))
    assert act.wait(60)
    assert logs.delete("t", 0)
    again = dirty(logs, "t", clock, segments=1)  # another topic of that name
    before = records_of(again)
    done.set()
    thread.join(60)
    assert [type(problem) for problem in problems] == [CleaningAborted]
    assert names(again) == set()
    assert records_of(again) == before
    assert logs.disk.failure is None
    logs.close()


def test_segments_that_are_deleted_while_they_are_cleaned(logs: Logs, clock: Clock) -> None:
    log = dirty(logs, "t", clock)
    act, done = threading.Event(), threading.Event()
    thread, problems = in_thread(pausing(log, act, done, at=5))
    assert act.wait(60)
    log.advance_start(log.segments[2].base_offset)
    assert log.delete_old_segments() == 2
    done.set()
    thread.join(60)
    assert [type(problem) for problem in problems] == [CleaningAborted]
    assert names(log) == set()
    assert logs.disk.failure is None
    clean(log, None, NOW)
    logs.close()
    assert_healthy(Path(logs.path))


def test_readers_go_on_while_segments_are_swapped(logs: Logs, clock: Clock) -> None:
    log = dirty(logs, "t", clock, segments=12)
    logs._recent.most = 2  # files are closed and opened again all the time
    last = {record.key: record for record in records_of(log)}
    stop, problems, rounds = threading.Event(), [], [0, 0]

    def read(number: int) -> None:
        try:
            while not stop.is_set():
                assert {record.key: record for record in records_of(log)} == last
                assert log.offset_at_time(NOW - 5000) is not None
                assert log.newest_record() is not None
                rounds[number] += 1
        except BaseException as problem:
            problems.append(problem)
            stop.set()

    readers = [threading.Thread(target=read, args=(n,)) for n in range(2)]
    for reader in readers:
        reader.start()
    checkpoint: int | None = None
    for n in count():
        checkpoint = clean(log, 0, NOW).end
        if stop.is_set() or (n >= 20 and min(rounds) > 3):
            break
    stop.set()
    for reader in readers:
        reader.join(60)
    assert problems == []
    assert checkpoint == log.segments[-1].base_offset
    assert logs.disk.failure is None
    logs.close()


def test_files_that_were_replaced_are_not_kept_open(logs: Logs, clock: Clock) -> None:
    """Their space would not be free before the node is stopped."""
    log = dirty(logs, "t", clock)
    records_of(log)  # all of them are open now
    given = log.read(0, 1000)
    clean(log, None, NOW)
    clock.now += 60_000
    logs.remove_deleted()

    def deleted() -> list[str]:
        links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        names = [os.readlink(link) for link in links if os.path.islink(link)]
        return [name for name in names if name.startswith(logs.path) and "deleted" in name]

    assert len(deleted()) == 1
    assert len(given.read()) == 1000  # whoever has it can still read it
    del given
    gc.collect()
    assert deleted() == []
    logs.close()


def test_appends_and_flushes_go_on_while_a_log_is_cleaned(logs: Logs, clock: Clock) -> None:
    log = dirty(logs, "t", clock)
    act, done = threading.Event(), threading.Event()
    thread, problems = in_thread(pausing(log, act, done, at=5))
    assert act.wait(60)
    writer = Writer(log, clock, 2)
    for _ in range(20):
        writer.append(writer.records(9))
    log.flush()
    done.set()
    thread.join(60)
    assert problems == []
    end = log.end_offset
    log.flush()
    logs.close()
    reopened = Logs.open(logs.path, lambda topic: log_config(CONFIG), clock=clock)
    found = reopened.get("t", 0)
    assert found is not None
    assert found.end_offset == end
    assert reopened.notes == []
    reopened.close()
    assert_healthy(Path(logs.path))


def test_a_damaged_log_is_set_aside_and_the_others_are_cleaned(
    logs: Logs, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = dirty(logs, "bad", clock), dirty(logs, "good", clock)
    segment = bad.segments[1]
    with open(segment.path(), "r+b") as file:
        file.seek(segment.size // 2)
        file.write(b"\xff" * 40)
    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    stop = threading.Event()
    with caplog.at_level(logging.WARNING):
        while cleaner.run_round(stop):
            pass
    assert list(cleaner.uncleanable) == [bad]
    assert segment.path() in cleaner.uncleanable[bad]
    assert "bad-0 is not compacted any more until the broker is started again" in caplog.text
    assert cleaner.first_dirty_offset(good) == good.segments[-1].base_offset
    assert cleaner.uncleanable_bytes(logs) > 0
    assert names(bad) == set()
    logs.delete("bad", 0)
    cleaner.run_round(stop)
    assert cleaner.uncleanable == {}
    logs.close()


def test_a_full_disk_leaves_the_log_as_it_was(
    logs: Logs, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = dirty(logs, "t", clock)
    before = records_of(log)
    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: False)
    with monkeypatch.context() as full:

        def no_room(fd: int, data: bytes, position: int) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(os, "pwrite", no_room)
        assert cleaner.run_round(stop)
    assert names(log) == set()
    assert records_of(log) == before
    assert cleaner.uncleanable == {}
    assert logs.disk.failure is None
    assert cleaner.run_round(stop)
    assert len(records_of(log)) < len(before)
    logs.close()


def test_a_swap_that_the_disk_refuses_takes_the_directory_offline(
    logs: Logs, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = dirty(logs, "t", clock)
    before = {record.key: record for record in records_of(log)}
    rename, numbers = os.rename, count()

    def failing(old: str, new: str) -> None:
        if next(numbers) == 5:
            raise OSError(errno.EIO, "Input/output error")
        rename(old, new)

    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", failing)
        cleaner.run_round(threading.Event())
    assert logs.disk.failure is not None
    logs.release()
    again = PartitionLog.open(
        log.directory, log_config(CONFIG), stopped=Stopped(clean=False), clock=clock
    )
    assert {record.key: record for record in records_of(again)} == before
    again.close()


def test_compacted_logs_are_deleted_from_as_well(tmp_path: Path) -> None:
    clock = Clock(wall_clock())  # segments without records are as old as their files
    data = log_directory(tmp_path / "data")
    config = log_config({**CONFIG, "cleanup.policy": "compact,delete", "retention.ms": str(DAY)})
    logs = Logs.open(data, lambda topic: config, clock=clock)
    log = dirty(logs, "t", clock)
    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    assert cleaner.run_round(threading.Event())
    assert log.start_offset == 0
    clock.now += DAY + 20_000
    log.append(one(timestamp=clock.now), 0)
    log.update_high_watermark(log.end_offset)
    logs.delete_old()
    assert log.start_offset == 0  # not while somebody may be cleaning it
    cleaner.run_round(threading.Event())
    assert log.start_offset == log.segments[0].base_offset == 320
    assert len(records_of(log)) == 1
    logs.close()
    assert_healthy(data)


def test_a_topic_that_is_not_compacted_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    logs = Logs.open(log_directory(tmp_path / "data"), lambda topic: LogConfig(), clock=clock)
    dirty(logs, "t", clock)
    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    assert not cleaner.run_round(threading.Event())
    assert not os.path.exists(os.path.join(logs.path, CLEANER_OFFSETS))
    logs.close()


def test_a_checkpoint_that_cannot_be_read_is_no_obstacle(logs: Logs, clock: Clock) -> None:
    log = dirty(logs, "t", clock)
    Path(logs.path, CLEANER_OFFSETS).write_text("0\n7\nnonsense\n")
    cleaner = Cleaner((logs,), SETTINGS, clock=clock)
    assert cleaner.run_round(threading.Event())
    assert Path(logs.path, CLEANER_OFFSETS).read_text() == f"0\n1\nt 0 {log.end_offset}\n"
    logs.close()


def test_a_thread_stops_when_it_is_told_to(logs: Logs, clock: Clock) -> None:
    dirty(logs, "t", clock)
    settings = CleanerSettings(io_max_bytes_per_second=10.0)  # it would take hours
    cleaner, stop = Cleaner((logs,), settings, clock=clock), threading.Event()
    thread = threading.Thread(target=run_thread, args=(cleaner, stop, "one"))
    thread.start()
    while not cleaner._busy:
        assert thread.is_alive()
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert cleaner.first_dirty_offset(logs.get("t", 0)) is None  # type: ignore[arg-type]  # there
    logs.close()


def test_a_rate_is_kept_by_all_together() -> None:
    now = 100.0
    throttle = Throttle(1000, clock=lambda: now)
    assert throttle.did(500) == 0.5
    assert throttle.did(500) == 1.0
    now = 105.0
    assert throttle.did(100) == pytest.approx(0.1)
    assert Throttle(1.7976931348623157e308).did(10**12) == 0
