"""Disks that are full, and disks that fail: what was acknowledged stays, and others go on."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraftline.storage.log import (
    DirectoryOffline,
    DiskFull,
    ErrorCode,
    LogConfig,
    Logs,
    PartitionLog,
    StorageFailed,
)
from tests.storage.log.logs import Clock, assert_healthy, log_directory, one, values_of

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100)


class Fault:
    """Lets a function of `os` fail from now on, after so many calls that are well."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def after(self, calls: int, name: str, code: int) -> None:
        real: Callable[..., object] = getattr(os, name)
        left = calls

        def faulty(*args: object, **more: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code))
            return real(*args, **more)

        self._patch.setattr(os, name, faulty)

    def mend(self) -> None:
        self._patch.undo()


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Fault:
    return Fault(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return log_directory(tmp_path / "data")


def filled(logs: Logs, topic: str = "t", count: int = 5) -> tuple[PartitionLog, list[bytes]]:
    log = logs.create(topic, 0)
    values = [f"value {n}".encode() for n in range(count)]
    for value in values:
        log.append(one(value), 0)
    return log, values


def test_a_full_disk_refuses_and_later_goes_on(directory: Path, fault: Fault) -> None:
    logs = Logs.open(directory, lambda topic: CONFIG, clock=Clock())
    log, values = filled(logs)
    fault.after(0, "pwrite", errno.ENOSPC)
    for _ in range(3):
        with pytest.raises(DiskFull, match="goes on when there is room") as failed:
            log.append(one("lost", producer=(1, 0, 0)), 0)
        assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.end_offset, values_of(log), len(log.producers)) == (5, values, 0)
    fault.mend()
    log.append(one("room", producer=(1, 0, 0)), 0)
    assert values_of(log) == [*values, b"room"]
    logs.close()
    assert_healthy(directory)


def test_a_roll_that_finds_no_room_is_tried_again(directory: Path, fault: Fault) -> None:
    logs = Logs.open(directory, lambda topic: CONFIG, clock=Clock())
    log, values = filled(logs, count=20)
    before = len(log.segments)
    while log.size + len(one("x")) <= 2000:
        log.append(one("x"), 0)
        values.append(b"x")
    fault.after(0, "open", errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.append(one(b"y" * 500), 0)
    fault.mend()
    assert len(log.segments) == before
    log.append(one("z" * 500), 0)
    assert values_of(log) == [*values, b"z" * 500]
    logs.close()
    assert_healthy(directory)


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_failed_disk_takes_its_directory_offline(
    directory: Path, tmp_path: Path, fault: Fault, call: str
) -> None:
    told: list[DirectoryOffline] = []
    logs = Logs.open(directory, lambda topic: CONFIG, clock=Clock(), on_failure=told.append)
    others = Logs.open(log_directory(tmp_path / "other"), lambda topic: CONFIG, clock=Clock())
    log, _ = filled(logs)
    second, _ = filled(logs, "u")
    other, values = filled(others)
    fault.after(0, call, errno.EIO)
    with pytest.raises(DirectoryOffline):
        log.append(one("lost"), 0) if call == "pwrite" else log.flush()
    fault.mend()
    assert len(told) == 1
    for each in (log, second):
        with pytest.raises(DirectoryOffline):
            each.append(one("late"), 0)
        with pytest.raises(DirectoryOffline):
            each.read(0, 1000)
        with pytest.raises(DirectoryOffline):
            each.flush()
    other.append(one("well"), 0)
    assert values_of(other) == [*values, b"well"]
    logs.close()
    others.close()
    # No marker: the next start must look closely.
    assert not (directory / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "other" / ".kafka_cleanshutdown").exists()
    logs = Logs.open(directory, lambda topic: CONFIG, clock=Clock())
    again = logs.get("t", 0)
    assert again is not None
    assert values_of(again)[:5] == values
    logs.close()


def test_a_flush_that_fails_for_want_of_room_is_a_failure(directory: Path, fault: Fault) -> None:
    """What fsync could not write may be gone from memory too: nothing can be trusted."""
    logs = Logs.open(directory, lambda topic: CONFIG, clock=Clock())
    log, _ = filled(logs)
    log.flush()
    log.append(one("more"), 0)
    fault.after(0, "fsync", errno.ENOSPC)
    with pytest.raises(DirectoryOffline):
        log.flush()
    assert log.recovery_point == 5
    fault.mend()
    logs.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode != 0:
        pytest.skip("mounting needs a privileged user")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_nothing_acknowledged_is_lost_on_a_disk_that_fills_up(tiny_disk: Path) -> None:
    directory = log_directory(tiny_disk / "data")
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    config = LogConfig(segment_bytes=20_000)
    logs = Logs.open(directory, lambda topic: config, clock=Clock())
    log = logs.create("t", 0)
    acknowledged: list[bytes] = []

    def fill() -> int:
        refused = 0
        for n in range(400):
            value = f"{len(acknowledged)} {n} ".encode() + b"x" * 1000
            try:
                log.append(one(value), 0)
                if n % 10 == 0:
                    log.flush()
            except StorageFailed:
                refused += 1
            else:
                acknowledged.append(value)
        return refused

    assert fill() > 0
    full = len(acknowledged)
    assert values_of(log) == acknowledged
    ballast.unlink()
    assert fill() > 0
    assert len(acknowledged) > full + 50
    assert values_of(log) == acknowledged
    logs.release()
    log_again = PartitionLog.open(directory / "t-0", config, clock=Clock())
    assert values_of(log_again) == acknowledged
    log_again.release()
