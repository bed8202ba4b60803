"""Appends: offsets, times, when a segment is full, and what the index files then hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraftline.config.effective import Config
from kraftline.node.standalone import standalone_config
from kraftline.records import batches
from kraftline.storage.log import LogConfig, PartitionLog, Stopped, log_config
from kraftline.storage.names import MAX_INT
from kraftline.storage.segment_write import rebuild_indexes
from tests.storage.log.logs import NOW, Clock, one, values_of

DAY = 24 * 3_600_000


def opened(tmp_path: Path, clock: Clock | None = None, **settings: int | bool) -> PartitionLog:
    config = LogConfig(**settings)  # type: ignore[arg-type]  # its fields
    return PartitionLog.open(tmp_path / "t-0", config, clock=clock or Clock())


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_offsets_and_epoch_are_written_into_the_header(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for epoch, count in ((3, 2), (3, 5), (4, 1)):
        log.append(one(count=count), epoch)
    found = list(batches(log.read(0, 10_000).read()))
    assert [(b.base_offset, b.last_offset, b.partition_leader_epoch) for b in found] == [
        (0, 1, 3),
        (2, 6, 3),
        (7, 7, 4),
    ]
    for batch in found:
        batch.check()
    assert [(e.epoch, e.start_offset) for e in log.epochs.entries] == [(3, 0), (4, 7)]


def test_the_records_are_the_bytes_that_came(tmp_path: Path) -> None:
    log = opened(tmp_path)
    sent = bytes(one(b"x" * 500, count=3))
    log.append(bytearray(sent), 0)
    assert log.read(0, 10_000).read()[21:] == sent[21:]


def test_log_append_time(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock, log_append_time=True)
    clock.now += 5
    done = log.append(one(timestamp=NOW - 10 * DAY, count=2), 0)
    assert done.log_append_time == NOW + 5
    [batch] = batches(log.read(0, 10_000).read())
    assert {record.timestamp for record in batch.records()} == {NOW + 5}


def test_a_segment_rolls_before_it_is_larger_than_segment_bytes(tmp_path: Path) -> None:
    size = len(one())
    log = opened(tmp_path, segment_bytes=3 * size)
    rolled = [log.append(one(), 0).rolled for _ in range(7)]
    assert bases(log) == [0, 3, 6]
    assert rolled == [False, False, False, True, False, False, True]
    assert all(segment.size <= 3 * size for segment in log.segments)


def test_a_segment_rolls_by_the_timestamps_of_its_records(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_ms=1000)
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW - 5000, NOW + 2002):
        log.append(one(timestamp=timestamp), 0)
    # The first timestamp of a segment counts, and only what is younger than it makes it old.
    assert bases(log) == [0, 2, 4]


def test_a_segment_without_timestamps_rolls_by_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock, segment_ms=1000)
    log.append(one(timestamp=-1), 0)
    clock.now += 1001
    log.append(one(timestamp=-1), 0)
    assert bases(log) == [0, 1]


def test_jitter_makes_segments_roll_earlier(tmp_path: Path) -> None:
    random.seed(1)
    log = opened(tmp_path, segment_ms=1_000_000, segment_jitter_ms=900_000)
    for n in range(70):
        log.append(one(timestamp=NOW + n * 50_000), 0)
    lengths = {b - a for a, b in zip(bases(log), bases(log)[1:], strict=False)}
    assert len(lengths) > 1
    assert max(lengths) <= 21


def test_a_segment_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_index_bytes=48, index_interval_bytes=0)
    for n in range(12):
        log.append(one(timestamp=NOW + n), 0)
    # The first batch gets no entry; of four places in the time index one is kept for the close.
    assert bases(log) == [0, 4, 8]


def test_a_segment_rolls_where_an_offset_would_be_too_far(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append(one(), 0)
    log.end_offset = MAX_INT
    log.append(one(count=1), 0)
    log.append(one(count=1), 0)
    assert bases(log) == [0, MAX_INT + 1]


@pytest.mark.parametrize("interval", [0, 100, 4096])
def test_index_files_are_those_that_kafka_would_build(tmp_path: Path, interval: int) -> None:
    log = opened(tmp_path, segment_bytes=20_000, index_interval_bytes=interval)
    for n in range(200):
        log.append(one(b"x" * (n * 37 % 700), timestamp=NOW + n * 11 % 97), 0)
        if n % 50 == 49:
            log.flush()
    log.close()
    for path in sorted((tmp_path / "t-0").glob("*.log")):
        files = (
            path.with_suffix(".index").read_bytes(),
            path.with_suffix(".timeindex").read_bytes(),
        )
        assert files == rebuild_indexes(path, interval=interval)


def test_a_flush_is_asked_for_after_so_many_messages(tmp_path: Path) -> None:
    log = opened(tmp_path, flush_messages=5)
    assert [log.append(one(count=2), 0).must_flush for _ in range(3)] == [False, False, True]
    assert log.recovery_point == 0
    assert log.flush() == 6
    assert not log.append(one(count=2), 0).must_flush


def test_a_flush_is_due_after_so_many_milliseconds(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock, flush_ms=1000)
    clock.now += 1000
    assert not log.flush_due(clock.now)
    log.append(one(), 0)
    assert log.flush_due(clock.now)
    log.flush()
    assert not log.flush_due(clock.now)


def test_a_preallocated_file_is_cut_when_it_is_closed(tmp_path: Path) -> None:
    log = opened(tmp_path, preallocate=True, segment_bytes=100_000)
    log.append(one("a"), 0)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    assert path.stat().st_size == 100_000
    log.release()
    again = PartitionLog.open(tmp_path / "t-0", log.config, clock=Clock())
    assert values_of(again) == [b"a"]
    again.append(one("b"), 0)
    again.close()
    assert path.stat().st_size == 2 * len(one("b"))
    log = PartitionLog.open(tmp_path / "t-0", log.config, stopped=Stopped(), clock=Clock())
    assert values_of(log) == [b"a", b"b"]
    log.close()


def test_configs_are_read_by_kafkas_names() -> None:
    assert log_config() == LogConfig()
    config = log_config(
        {
            "cleanup.policy": "compact,delete",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "segment.bytes": "2000000",
            "message.timestamp.type": "LogAppendTime",
        }
    )
    assert (config.compact, config.delete, config.level) == (True, True, 7)
    assert (config.segment_bytes, config.log_append_time) == (2_000_000, True)


def test_a_config_that_nobody_takes_counts_as_not_set(caplog: pytest.LogCaptureFixture) -> None:
    found = log_config({"retention.ms": "soon", "segment.bytes": "2097152"})
    assert found == LogConfig(segment_bytes=2_097_152)
    assert "retention.ms" in caplog.text


def test_configs_of_the_metadata_count_more_than_the_brokers_file() -> None:
    def file(**given: str) -> Config:
        return standalone_config({name.replace("_", "."): text for name, text in given.items()})

    coarse = file(log_retention_hours="5", log_segment_bytes="3000000")
    assert log_config({}, coarse).retention_ms == 5 * 3_600_000
    dynamic = {"log.retention.minutes": "7", "log.segment.bytes": "4000000"}
    config = log_config({}, coarse, dynamic)
    assert (config.retention_ms, config.segment_bytes) == (7 * 60_000, 4_000_000)
    # The finer unit counts wherever it stands; a topic's own counts most.
    fine = file(log_retention_ms="9")
    assert log_config({}, fine, dynamic).retention_ms == 9
    assert log_config({"retention.ms": "3"}, fine, dynamic).retention_ms == 3
    assert log_config({}, None, {"log.retention.ms": "-1"}).retention_ms == -1
