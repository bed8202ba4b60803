"""A log directory as a whole: opened, checkpointed, closed, and owned by one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage.checkpoints import read_offset_checkpoint
from kraftline.storage.clean_shutdown import read_clean_shutdown
from kraftline.storage.log import InconsistentTopicId, LogClosed, LogConfig, Logs
from tests.storage.log.logs import Clock, assert_healthy, log_directory, one, values_of

CONFIG = LogConfig(retention_ms=-1, file_delete_delay_ms=1000)
TOPIC_ID = Uuid.parse("kUMDWXaTQ8WQbfVjQ6lJmw")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return log_directory(tmp_path / "data")


def opened(directory: Path, clock: Clock | None = None) -> Logs:
    return Logs.open(directory, lambda topic: CONFIG, clock=clock or Clock())


def checkpoint(directory: Path, name: str) -> dict[str, int]:
    entries = read_offset_checkpoint(directory / f"{name}-checkpoint")
    return {f"{entry.topic}-{entry.partition}": entry.offset for entry in entries}


def test_a_stop_leaves_what_kafka_leaves(directory: Path) -> None:
    logs = opened(directory)
    assert not logs.was_clean
    for partition in range(3):
        log = logs.create("orders", partition, TOPIC_ID)
        for _ in range(partition):
            log.append(one(), 0)
        log.update_high_watermark(partition)
    log.advance_start(1)
    logs.close(broker_epoch=42)
    assert checkpoint(directory, "recovery-point-offset") == {f"orders-{n}": n for n in range(3)}
    assert checkpoint(directory, "replication-offset") == {f"orders-{n}": n for n in range(3)}
    # Only where the log does not start with its first segment.
    assert checkpoint(directory, "log-start-offset") == {"orders-2": 1}
    assert read_clean_shutdown(directory / ".kafka_cleanshutdown").broker_epoch == 42
    metadata = (directory / "orders-1" / "partition.metadata").read_text()
    assert metadata == f"version: 0\ntopic_id: {TOPIC_ID}"
    assert (directory / "orders-1" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert sorted(path.name for path in (directory / "orders-0").iterdir()) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        "partition.metadata",
    ]
    assert_healthy(directory)


def test_a_start_goes_on_where_the_stop_was(directory: Path) -> None:
    logs = opened(directory)
    log = logs.create("orders", 0, TOPIC_ID)
    for n in range(5):
        log.append(one(str(n)), 0)
    log.update_high_watermark(4)
    log.advance_start(2)
    logs.close(broker_epoch=42)
    logs = opened(directory)
    assert (logs.was_clean, logs.previous_broker_epoch) == (True, 42)
    assert not (directory / ".kafka_cleanshutdown").exists()
    again = logs.get("orders", 0)
    assert again is not None
    assert (again.start_offset, again.high_watermark, again.end_offset) == (2, 4, 5)
    assert again.topic_id == TOPIC_ID
    assert values_of(again, 2) == [b"2", b"3", b"4"]
    logs.close()


def test_a_crash_is_recovered_from_the_recovery_points(directory: Path) -> None:
    logs = opened(directory)
    log = logs.create("orders", 0, TOPIC_ID)
    log.append(one("a"), 0)
    log.flush()
    log.append(one("b"), 0)
    logs.checkpoint()
    logs.release()
    logs = opened(directory)
    assert (logs.was_clean, logs.previous_broker_epoch, logs.notes) == (False, None, [])
    again = logs.get("orders", 0)
    assert again is not None
    assert (again.recovery_point, values_of(again)) == (1, [b"a", b"b"])
    logs.close()


def test_a_directory_has_one_owner(directory: Path) -> None:
    logs = opened(directory)
    script = f"""
from kraftline.storage.log import LogConfig, Logs
Logs.open({str(directory)!r}, lambda topic: LogConfig())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "another process owns this log directory" in done.stderr
    logs.close()


def test_a_deleted_partition_is_renamed_now_and_gone_later(directory: Path) -> None:
    clock = Clock()
    logs = opened(directory, clock)
    log = logs.create("orders", 0, TOPIC_ID)
    log.append(one(), 0)
    logs.create("orders", 1, TOPIC_ID)
    given = log.read(0, 1000)
    expected = given.read()
    assert logs.delete("orders", 0)
    assert not logs.delete("orders", 0)
    [renamed] = directory.glob("orders-0.*-delete")
    assert given.read() == expected
    with pytest.raises(LogClosed):
        log.append(one(), 0)
    with pytest.raises(LogClosed):
        log.read(0, 1000)
    # The same name is free at once, and what was known of the old partition is forgotten first.
    assert logs.create("orders", 0, Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")).end_offset == 0
    assert checkpoint(directory, "recovery-point-offset") == {"orders-1": 0}
    clock.now += 1000
    logs.remove_deleted()
    assert not renamed.exists()
    logs.close()


def test_a_deletion_that_a_stop_cut_short_goes_on(directory: Path) -> None:
    logs = opened(directory)
    logs.create("orders", 0, TOPIC_ID)
    logs.delete("orders", 0)
    logs.close()
    clock = Clock()
    logs = opened(directory, clock)
    assert len(logs) == 0
    clock.now += 1000
    logs.remove_deleted()
    assert not list(directory.glob("orders*"))
    logs.close()


def test_stray_partitions_are_kept_aside(directory: Path) -> None:
    logs = opened(directory)
    logs.create("orders", 0, TOPIC_ID).append(one(), 0)
    assert logs.set_aside("orders", 0)
    logs.close()
    logs = opened(directory)
    assert len(logs) == 0
    [path] = logs.left_alone
    assert (Path(path) / f"{0:020d}.log").stat().st_size > 0
    logs.close()


def test_another_topic_of_the_same_name_is_refused(directory: Path) -> None:
    logs = opened(directory)
    logs.create("orders", 0, TOPIC_ID)
    logs.close()
    logs = opened(directory)
    log = logs.get("orders", 0)
    assert log is not None
    assert log.topic_id == TOPIC_ID
    logs.release()
    with pytest.raises(InconsistentTopicId):
        type(log).open(log.directory, CONFIG, topic_id=Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ"))


def test_the_metadata_log_is_left_alone(directory: Path) -> None:
    (directory / "__cluster_metadata-0").mkdir()
    logs = opened(directory)
    assert len(logs) == 0
    logs.close()
    assert list((directory / "__cluster_metadata-0").iterdir()) == []


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotKafka):
        opened(tmp_path / "nowhere")


def test_retention_and_flushes_of_all_logs(directory: Path) -> None:
    clock = Clock()
    config = LogConfig(retention_ms=1000, flush_ms=500, file_delete_delay_ms=0)
    logs = Logs.open(directory, lambda topic: config, clock=clock)
    for partition in range(3):
        log = logs.create("orders", partition)
        log.append(one(), 0)
        log.update_high_watermark(1)
    clock.now += 500
    assert (logs.flush_due(), logs.flush_due()) == (3, 0)
    assert logs.delete_old() == 0
    clock.now += 501
    assert logs.delete_old() == 3
    logs.remove_deleted()
    assert not list(directory.rglob("*.deleted"))
    assert [log.start_offset for log in logs] == [1, 1, 1]
    logs.close()
