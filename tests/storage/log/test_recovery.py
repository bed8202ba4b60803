"""After a crash: the log ends before the first bad batch, and everything else is made again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.log import LogConfig, PartitionLog, Stopped
from kraftline.storage.segment_write import rebuild_indexes
from tests.storage.log.logs import NOW, Clock, assert_healthy, log_directory, one, values_of

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, retention_ms=-1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Thirty records in some segments, flushed after the twelfth, then killed."""
    log = PartitionLog.open(log_directory(tmp_path / "data") / "t-0", CONFIG, clock=Clock())
    for n in range(30):
        producer = (5, 0, n // 2) if n % 2 == 0 else None
        log.append(one(f"value {n}", timestamp=NOW + n, producer=producer), n // 8)
        if n == 12:
            log.flush()
    assert len(log.segments) > 3
    log.release()
    return tmp_path / "data" / "t-0"


def recovered(directory: Path, recovery_point: int = 0, start: int = 0) -> PartitionLog:
    stopped = Stopped(False, recovery_point, start)
    return PartitionLog.open(directory, CONFIG, stopped=stopped, clock=Clock())


def values(count: int) -> list[bytes]:
    return [f"value {n}".encode() for n in range(count)]


def logs_of(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def test_everything_is_there_after_a_kill(directory: Path) -> None:
    log = recovered(directory, 13)
    assert values_of(log) == values(30)
    assert log.opening.lines() == []
    assert 0 < log.opening.recovered_segments < len(log.segments)
    assert log.epochs.entries == tuple(EpochStart(n, 8 * n) for n in range(4))
    assert log.recovery_point == 13
    log.close()
    for path in logs_of(directory):
        assert rebuild_indexes(path, interval=100) == (
            path.with_suffix(".index").read_bytes(),
            path.with_suffix(".timeindex").read_bytes(),
        )
    assert_healthy(directory.parent)


def test_a_half_written_batch_is_cut_off(directory: Path) -> None:
    last = logs_of(directory)[-1]
    with last.open("ab") as file:
        file.write(bytes(one("never acknowledged"))[:50])
    log = recovered(directory, 13)
    assert values_of(log) == values(30)
    [cut] = log.opening.cuts
    assert (cut.length, cut.offset, cut.batches) == (50, 30, 0)
    assert log.append(one("next"), 4).first_offset == 30
    assert values_of(log) == [*values(30), b"next"]
    log.close()


def test_what_follows_a_bad_batch_goes_with_it(directory: Path) -> None:
    second = logs_of(directory)[1]
    data = bytearray(second.read_bytes())
    size = len(one("value 9", producer=(5, 0, 0)))
    data[size + 70] ^= 0xFF
    second.write_bytes(data)
    first_lost = int(second.stem) + 1
    following = logs_of(directory)[2:]
    log = recovered(directory)
    assert values_of(log) == values(first_lost)
    assert log.end_offset == first_lost
    assert log.opening.cuts[0].file == str(second)
    assert log.opening.cuts[0].batches > 0
    assert len(log.opening.cuts) == 1 + len(following)
    assert logs_of(directory)[-1] == second
    log.append(one("next"), 9)
    log.close()
    assert_healthy(directory.parent)


def test_below_the_recovery_point_nothing_is_looked_at(directory: Path) -> None:
    first = logs_of(directory)[0]
    data = bytearray(first.read_bytes())
    data[-5] ^= 0xFF
    first.write_bytes(data)
    assert recovered(directory, 13).end_offset == 30
    assert recovered(directory, 0).end_offset < 13


def test_producers_and_duplicates_are_known_after_a_kill(directory: Path) -> None:
    log = recovered(directory, 13)
    again = log.append(one("value 28", timestamp=NOW, producer=(5, 0, 14)), 4)
    assert (again.is_duplicate, again.first_offset) == (True, 28)


def _without(pattern: str) -> Callable[[Path], None]:
    def remove(directory: Path) -> None:
        for path in directory.glob(pattern):
            path.unlink()

    return remove


@pytest.mark.parametrize(
    "harm",
    [
        _without("*.index"),
        _without("*.timeindex"),
        _without("*.snapshot"),
        _without("leader-epoch-checkpoint"),
        lambda directory: (directory / "leader-epoch-checkpoint").write_text("nonsense"),
        lambda directory: [p.write_bytes(b"x") for p in directory.glob("*.snapshot")],
        lambda directory: (directory / f"{77:020d}.index").write_bytes(bytes(8)),
        lambda directory: (directory / f"{0:020d}.log.deleted").write_bytes(b"x"),
        lambda directory: (directory / f"{0:020d}.log.cleaned").write_bytes(b"x"),
        lambda directory: (directory / f"{99:020d}.snapshot").write_bytes(b"x"),
    ],
    ids=[
        "no offset indexes",
        "no time indexes",
        "no snapshots",
        "no epochs",
        "bad epochs",
        "bad snapshots",
        "an index too many",
        "a file to be deleted",
        "a file of the cleaner",
        "a snapshot past the end",
    ],
)
@pytest.mark.parametrize("point", [0, 13])
def test_what_can_be_made_again_may_be_missing(
    directory: Path, harm: Callable[[Path], object], point: int
) -> None:
    harm(directory)
    log = recovered(directory, point)
    assert values_of(log) == values(30)
    assert log.epochs.latest == 3
    assert log.append(one(producer=(5, 0, 15)), 4).first_offset == 30
    assert log.offset_at_time(NOW + 20) is not None
    log.close()
    again = PartitionLog.open(directory, CONFIG, stopped=Stopped(), clock=Clock())
    assert len(values_of(again)) == 31
    again.close()


def test_a_swap_takes_the_place_of_what_it_was_made_of(directory: Path) -> None:
    """What Kafka's cleaner leaves when it is killed between two renames."""
    first, second = logs_of(directory)[:2]
    merged = first.read_bytes() + second.read_bytes()
    (directory / f"{first.name}.swap").write_bytes(merged)
    log = recovered(directory)
    assert values_of(log) == values(30)
    assert not second.exists()
    log.close()
    assert_healthy(directory.parent)


def test_a_start_offset_above_the_end_begins_anew(directory: Path) -> None:
    log = recovered(directory, 13, 100)
    assert (log.start_offset, log.end_offset) == (100, 100)
    assert [path.name for path in logs_of(directory)] == [f"{100:020d}.log"]
    assert all(cut.batches > 0 for cut in log.opening.cuts)


def test_a_damaged_middle_never_makes_a_record_twice(directory: Path, tmp_path: Path) -> None:
    """Whatever byte is wrong: a prefix of the log is there, and appending goes on behind it."""
    for n, path in enumerate(logs_of(directory)):
        for at in range(0, path.stat().st_size, 97):
            copy = tmp_path / f"{n}-{at}" / "t-0"
            shutil.copytree(directory, copy)
            with (copy / path.name).open("r+b") as file:
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 0x55]))
            log = recovered(copy)
            found = values_of(log)
            # The leader epoch and base offset are outside of the checksum.
            assert found == values(30)[: len(found)]
            assert log.append(one("next"), 9).first_offset == log.end_offset - 1
            log.release()
