"""Log directories that real Kafka left open here, say what Kafka said of them, and go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftline.records import Record
from kraftline.storage.log import LogConfig, Logs, PartitionLog, Stopped
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.names import PartitionState, parse_partition
from kraftline.storage.producer_snapshot import read_producer_snapshot
from kraftline.storage.segment import SegmentReader
from kraftline.storage.txn_index import read_txn_index
from tests.fixture_files import FIXTURES
from tests.storage.fixture_files import log_directories, partition_directories
from tests.storage.log.logs import NOW, Clock, one, records_of

KEEP = LogConfig(retention_ms=-1)
CLEAN = [
    path
    for path in log_directories()
    if (path / ".kafka_cleanshutdown").exists() and "eventful_day" not in path.parts
]
KILLED = FIXTURES / "killed_4_3" / "data"


def name_of(path: Path) -> str:
    return str(path.relative_to(FIXTURES)).replace("/data/", "/")


def topic_partitions(directory: Path) -> list[Path]:
    found = []
    for path in sorted(directory.iterdir()):
        name = parse_partition(path.name) if path.is_dir() else None
        if name is not None and name.state is PartitionState.NORMAL:
            found.append(path)
    return [path for path in found if not path.name.startswith("__cluster_metadata")]


def records_in(directory: Path) -> list[Record]:
    """Every record of a partition, by the readers of files."""
    found = []
    for path in sorted(directory.glob("*.log")):
        with SegmentReader(path) as reader:
            for batch, _ in reader.batches():
                found += batch.records()
    return found


@pytest.fixture
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(request.param, copy)
    return copy


@pytest.mark.parametrize("directory", CLEAN, ids=name_of, indirect=True)
def test_a_clean_directory_opens_as_it_is(directory: Path) -> None:
    expected = {path.name: records_in(path) for path in topic_partitions(directory)}
    files = {
        path.name: {file.name: file.read_bytes() for file in path.iterdir()}
        for path in topic_partitions(directory)
    }
    said = read_log_directory(directory)
    watermarks = {f"{e.topic}-{e.partition}": e.offset for e in said.high_watermarks}
    starts = {f"{e.topic}-{e.partition}": e.offset for e in said.log_start_offsets}
    logs = Logs.open(directory, lambda topic: KEEP)
    assert logs.was_clean
    assert not (directory / ".kafka_cleanshutdown").exists()
    assert {log.name for log in logs} == set(expected)
    for log in logs:
        start = starts.get(log.name, 0)
        assert log.start_offset == max(start, log.segments[0].base_offset)
        assert records_of(log) == [r for r in expected[log.name] if r.offset >= log.start_offset]
        assert log.recovery_point == log.end_offset
        assert log.opening.recovered_segments == 0
        if log.name in watermarks:
            assert log.high_watermark == min(watermarks[log.name], log.end_offset)
    logs.close()
    for path in topic_partitions(directory):
        after = {file.name: file.read_bytes() for file in path.iterdir()}
        # A stop and start takes no note of anything: but Kafka leaves out what it can make again.
        for name, data in files[path.name].items():
            if not name.endswith(".deleted"):
                assert after.get(name, data) == data, f"{path.name}/{name}"


@pytest.mark.parametrize("directory", CLEAN, ids=name_of, indirect=True)
def test_records_follow_those_of_kafka(directory: Path) -> None:
    expected = {path.name: records_in(path) for path in topic_partitions(directory)}
    with_clock = Clock(NOW)
    logs = Logs.open(directory, lambda topic: KEEP, clock=with_clock)
    ends = {log.name: log.end_offset for log in logs}
    for log in logs:
        done = log.append(one("ours"), 99)
        assert done.first_offset == ends[log.name]
    logs.close(broker_epoch=7)
    logs = Logs.open(directory, lambda topic: KEEP, clock=with_clock)
    assert (logs.was_clean, logs.previous_broker_epoch) == (True, 7)
    for log in logs:
        found = records_of(log)
        kept = [r for r in expected[log.name] if r.offset >= log.start_offset]
        assert found[:-1] == kept
        assert (found[-1].offset, found[-1].value) == (ends[log.name], b"ours")
        assert log.latest().leader_epoch == 99
    logs.close()


@pytest.mark.parametrize(
    "path",
    # Compaction takes markers away, which the index then still knows.
    [
        path
        for path in partition_directories()
        if list(path.glob("*.txnindex")) and path.name.startswith("transactions-")
    ],
    ids=name_of,
)
def test_recovery_finds_the_transactions_that_kafka_found(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copytree(path, copy)
    log = PartitionLog.open(copy, KEEP, stopped=Stopped(clean=False), clock=Clock())
    assert log.opening.cuts == ()
    for index in path.glob("*.txnindex"):
        assert read_txn_index(copy / index.name) == read_txn_index(index)
    log.close()


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(KILLED.rglob("*.log")) if "__cluster_metadata" not in str(path)],
    ids=name_of,
)
def test_a_killed_log_is_recovered(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.parent.name
    shutil.copytree(path.parent, copy)
    expected = records_in(path.parent)
    log = PartitionLog.open(copy, KEEP, stopped=Stopped(clean=False), clock=Clock())
    assert records_of(log) == expected
    assert all(cut.batches == 0 for cut in log.opening.cuts)
    log.close()
    snapshot = copy / f"{log.end_offset:020d}.snapshot"
    if expected:
        assert snapshot.exists()
        known = {entry.producer_id for entry in read_producer_snapshot(snapshot)}
        assert known == {producer.id for producer in log.producers.all()}
