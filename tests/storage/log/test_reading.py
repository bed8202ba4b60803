"""Reads: where a range begins and ends, and that it stays readable; offsets by time and epoch."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from kraftline.records import batches
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.log import LogConfig, OffsetAt, OffsetOutOfRange, PartitionLog
from kraftline.storage.log.segments import RecentlyRead
from tests.storage.log.logs import NOW, Clock, one, records_of, values_of, whole


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Offsets 0 to 59 in batches of three, five batches a segment."""
    size = len(one(b"x" * 300, count=3))
    config = LogConfig(segment_bytes=5 * size, index_interval_bytes=size)
    log = PartitionLog.open(tmp_path / "t-0", config, clock=Clock())
    for n in range(20):
        log.append(one(b"x" * 300, count=3, timestamp=NOW + 10 * n), n // 7)
    log.update_high_watermark(60)
    return log


def offsets(data: bytes) -> list[int]:
    return [record.offset for batch in batches(whole(data)) for record in batch.records()]


@pytest.mark.parametrize("offset", range(0, 60, 7))
def test_a_range_begins_with_the_batch_of_its_offset(log: PartitionLog, offset: int) -> None:
    assert offsets(log.read(offset, 1_000_000).read())[0] == offset - offset % 3


def test_a_range_stays_in_its_segment(log: PartitionLog) -> None:
    assert offsets(log.read(4, 1_000_000).read()) == list(range(3, 15))


def test_limits_are_kept_but_for_the_first_batch(log: PartitionLog) -> None:
    size = len(one(b"x" * 300, count=3))
    assert log.read(0, 10).length == size
    # Half a batch is of no use to anyone, so Kafka gives none.
    assert log.read(0, size - 1, at_least_one=False).length == 0
    assert log.read(0, size, at_least_one=False).length == size
    assert log.read(0, size + 10, at_least_one=False).length == size + 10
    assert log.read(0, size + 1).length == size + 1
    assert offsets(log.read(0, size + 1).read()) == [0, 1, 2]


def test_a_range_ends_before_its_bound(log: PartitionLog) -> None:
    assert offsets(log.read(0, 1_000_000, up_to=6).read()) == list(range(6))
    assert log.read(6, 1_000_000, up_to=6).length == 0
    assert log.read(9, 1_000_000, up_to=6).length == 0
    # A bound within a batch: a batch that is not wholly below it is not given.
    assert log.read(6, 1_000_000, up_to=7).length == 0
    assert offsets(log.read(4, 1_000_000, up_to=60).read()) == list(range(3, 15))
    assert offsets(log.read(4, 1_000_000, up_to=15).read()) == list(range(3, 15))


def test_offsets_outside_of_the_log_are_refused(log: PartitionLog) -> None:
    log.advance_start(5)
    for offset in (-1, 4, 61):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 1000)
    assert log.read(60, 1000).length == 0
    assert offsets(log.read(5, 10).read()) == [3, 4, 5]


def test_a_range_can_be_sent_after_its_segment_is_gone(log: PartitionLog, tmp_path: Path) -> None:
    given = log.read(0, 1_000_000)
    expected = given.read()
    log.advance_start(40)
    assert log.delete_old_segments() == 2
    for path in (tmp_path / "t-0").glob("*.deleted"):
        path.unlink()
    assert given.file is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent = os.sendfile(ours.fileno(), given.file.fd, given.position, given.length)
        assert theirs.recv(sent, socket.MSG_WAITALL) == expected[:sent]


def test_files_are_closed_when_nobody_reads_them(log: PartitionLog) -> None:
    given = log.read(0, 100)
    assert given.file is not None
    fd = given.file.fd
    log.close()
    os.fstat(fd)
    del given
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def test_only_some_closed_segments_are_kept_open(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=200)
    log = PartitionLog.open(tmp_path / "t-0", config, recent=RecentlyRead(3), clock=Clock())
    for n in range(50):
        log.append(one(str(n)), 0)
    assert values_of(log) == [str(n).encode() for n in range(50)]
    mine = [fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, tmp_path)]
    assert len(mine) <= 4
    log.close()


def _leads_to(fd: str, directory: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith(str(directory))
    except OSError:
        return False


def test_an_index_that_is_damaged_costs_time_only(log: PartitionLog, tmp_path: Path) -> None:
    log.flush()
    for segment in log.segments:
        segment.let_go()
    for path in (tmp_path / "t-0").glob("*index"):
        path.write_bytes(b"\xff" * 13)
    assert [record.offset for record in records_of(log)] == list(range(60))


def test_earliest_and_latest(log: PartitionLog) -> None:
    assert log.earliest() == OffsetAt(0, leader_epoch=0)
    assert log.latest() == OffsetAt(60, leader_epoch=2)
    log.advance_start(50)
    assert log.earliest() == OffsetAt(50, leader_epoch=2)


def test_the_newest_record(log: PartitionLog) -> None:
    assert log.newest_record() == OffsetAt(59, NOW + 192, 2)
    log.append(one(count=3, timestamp=NOW + 190), 2)
    # The first of those that have the largest timestamp.
    assert log.newest_record() == OffsetAt(59, NOW + 192, 2)
    log.append(one(count=3, timestamp=NOW + 5000), 3)
    assert log.newest_record() == OffsetAt(65, NOW + 5002, 3)


def test_an_empty_log_has_no_newest_record(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "t-0", clock=Clock())
    assert log.newest_record() is None
    assert log.offset_at_time(0) is None
    assert (log.earliest(), log.latest()) == (OffsetAt(0), OffsetAt(0))


def test_offsets_by_time_are_those_of_records(log: PartitionLog) -> None:
    assert log.offset_at_time(NOW + 41) == OffsetAt(13, NOW + 41, 0)
    assert log.offset_at_time(NOW + 43) == OffsetAt(15, NOW + 50, 0)
    assert log.offset_at_time(0) == OffsetAt(0, NOW, 0)
    assert log.offset_at_time(NOW + 193) is None
    log.advance_start(14)
    assert log.offset_at_time(NOW + 41) == OffsetAt(14, NOW + 42, 0)


def test_where_epochs_end(log: PartitionLog) -> None:
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 2)] == [
        EpochStart(0, 21),
        EpochStart(1, 42),
        EpochStart(2, 60),
    ]
    assert log.end_of_epoch(3) is None
    assert log.end_of_epoch(-1) is None
    log.append(one(), 9)
    assert log.end_of_epoch(5) == EpochStart(2, 60)
    log.advance_start(30)
    assert log.end_of_epoch(0) == EpochStart(0, 30)
