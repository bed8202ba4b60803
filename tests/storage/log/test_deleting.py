"""Deletion: by time, by size, by the log's start; whole segments, and their files later."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.storage.log import LogConfig, OffsetOutOfRange, PartitionLog
from kraftline.storage.log.removals import Removals
from tests.storage.log.logs import NOW, Clock, one

SIZE = len(one())
HOUR = 3_600_000


def filled(tmp_path: Path, clock: Clock, removals: Removals, **settings: int) -> PartitionLog:
    """Ten records, an hour apart, two a segment."""
    config = LogConfig(segment_bytes=2 * SIZE, **settings)  # type: ignore[arg-type]  # its fields
    log = PartitionLog.open(tmp_path / "t-0", config, clock=clock, removals=removals)
    for n in range(10):
        clock.now = NOW + n * HOUR
        log.append(one(timestamp=clock.now), n // 3)
    log.update_high_watermark(10)
    return log


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def removals() -> Removals:
    return Removals()


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_by_time_the_newest_record_of_a_segment_counts(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=5 * HOUR)
    # Nine hours after the first record; the one at four is not over yet.
    assert log.delete_old_segments() == 2
    assert (bases(log), log.start_offset) == ([4, 6, 8], 4)
    assert log.epochs.entries[0].start_offset == 4


def test_a_log_that_is_over_becomes_empty(tmp_path: Path, clock: Clock, removals: Removals) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=5 * HOUR)
    clock.now += 10 * HOUR
    assert log.delete_old_segments() == 5
    assert (bases(log), log.start_offset, log.end_offset) == ([10], 10, 10)
    assert log.delete_old_segments() == 0
    assert log.append(one(timestamp=clock.now), 9).first_offset == 10


def test_by_size_the_oldest_go(tmp_path: Path, clock: Clock, removals: Removals) -> None:
    log = filled(tmp_path, clock, removals, retention_bytes=5 * SIZE, retention_ms=-1)
    # Two segments of two fit into the excess of five records.
    assert log.delete_old_segments() == 2
    assert bases(log) == [4, 6, 8]


def test_nothing_at_or_above_the_high_watermark_goes(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=0)
    log.high_watermark = 5
    assert log.delete_old_segments() == 2
    assert bases(log) == [4, 6, 8]


def test_without_retention_only_what_is_before_the_start_goes(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=1, delete=False)
    assert log.delete_old_segments() == 0
    log.advance_start(5)
    assert log.delete_old_segments() == 2
    assert (bases(log), log.start_offset) == ([4, 6, 8], 5)


def test_the_start_never_passes_the_high_watermark(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals)
    log.high_watermark = 5
    with pytest.raises(OffsetOutOfRange):
        log.advance_start(6)
    assert log.advance_start(5)
    assert not log.advance_start(3)
    assert log.start_offset == 5


def test_files_are_renamed_now_and_removed_later(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=5 * HOUR, file_delete_delay_ms=1000)
    log.flush()
    log.delete_old_segments()
    renamed = sorted(path.name for path in (tmp_path / "t-0").glob("*.deleted"))
    kinds = ("index", "log", "timeindex")
    assert renamed == [
        *(f"{0:020d}.{kind}.deleted" for kind in kinds),
        *(f"{2:020d}.{kind}.deleted" for kind in ("index", "log", "snapshot", "timeindex")),
    ]
    clock.now += 999
    assert removals.remove_due(clock.now) == 0
    clock.now += 1
    assert removals.remove_due(clock.now) == 7
    assert not list((tmp_path / "t-0").glob("*.deleted"))


def test_what_was_left_of_a_deletion_goes_at_the_next_start(
    tmp_path: Path, clock: Clock, removals: Removals
) -> None:
    log = filled(tmp_path, clock, removals, retention_ms=5 * HOUR)
    log.delete_old_segments()
    log.close()
    log = PartitionLog.open(tmp_path / "t-0", log.config, clock=clock)
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    assert bases(log) == [4, 6, 8]
