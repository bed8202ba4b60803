"""What is in a log directory and in a partition's directory."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage import partition_dir
from kraftline.storage.checkpoints import PartitionOffset
from kraftline.storage.detect import PathKind, detect
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.names import (
    FileKind,
    PartitionName,
    PartitionState,
    SnapshotId,
    SnapshotState,
)
from kraftline.storage.partition_dir import read_partition_directory
from tests.another_user import another_user, open_directory
from tests.fixture_files import name_of
from tests.storage.fixture_files import data_files, log_directories, partition_directories


@pytest.mark.parametrize("path", log_directories(), ids=name_of)
def test_log_directories_of_kafka_hold_nothing_odd(path: Path) -> None:
    found = read_log_directory(path)
    assert found.oddities == ()
    assert found.unknown == ()
    assert found.meta is not None
    assert {os.path.basename(place.path) for place in found.partitions} == {
        entry.name for entry in path.iterdir() if entry.is_dir()
    }
    # A partition is in the checkpoints if and only if its directory is there, or was.
    known = {(place.name.topic, place.name.partition) for place in found.partitions}
    if found.clean_shutdown is not None:
        normal = {
            (place.name.topic, place.name.partition)
            for place in found.partitions
            if place.name.state is PartitionState.NORMAL
            and not place.name.topic.startswith("__cluster_metadata")
        }
        assert normal <= {(e.topic, e.partition) for e in found.recovery_points} | {
            (e.topic, e.partition) for e in found.high_watermarks
        }
    assert known


@pytest.mark.parametrize("path", partition_directories(), ids=name_of)
def test_partition_directories_of_kafka_hold_nothing_odd(path: Path) -> None:
    found = read_partition_directory(path)
    assert found.oddities == ()
    assert found.unknown == ()
    if found.name is None:
        return  # loose files
    logs = sorted(path.glob("*.log"))
    assert [segment.path for segment in found.segments] == [str(log) for log in logs]
    assert [segment.size for segment in found.segments] == [log.stat().st_size for log in logs]
    assert [segment.base_offset for segment in found.segments] == [int(log.stem) for log in logs]
    for segment in found.segments:
        beside = {c.path for c in segment.companions}
        assert beside == {str(p) for p in path.glob(f"{segment.base_offset:020d}.*index")}
    assert found.size == sum(segment.size for segment in found.segments)


def test_the_metadata_log_is_found_with_its_snapshots() -> None:
    path = next(p.parent for p in data_files("bootstrap.checkpoint") if "metadata_4_3" in str(p))
    found = read_log_directory(path)
    assert found.bootstrap == str(path / "bootstrap.checkpoint")
    place = found.metadata_log()
    assert place is not None
    partition = read_partition_directory(place.path)
    assert partition.name == PartitionName("__cluster_metadata", 0)
    assert partition.topic_id == Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
    assert partition.quorum_state is not None
    assert partition.leader_epochs
    assert partition.snapshots
    assert all(snapshot.state is SnapshotState.WHOLE for snapshot in partition.snapshots)


def test_every_kind_of_file_has_its_place(tmp_path: Path) -> None:
    folder = tmp_path / f"orders-3.{'0' * 32}-delete"
    folder.mkdir()
    for name in (
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000000000.txnindex",
        "00000000000000000010.snapshot",
        "00000000000000000010.log.deleted",
        "00000000000000000020.log.swap",
        "00000000000000000099.index",
        "00000000000000000050-0000000002-77.checkpoint.part",
        "notes.txt",
        "leader-epoch-checkpoint.tmp",
    ):
        (folder / name).write_bytes(b"")
    (folder / "partition.metadata").write_bytes(b"nonsense")
    (folder / "sub").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    found = read_partition_directory(folder)
    assert found.name == PartitionName("orders", 3, PartitionState.DELETED, "0" * 32)
    (segment,) = found.segments
    assert [companion.kind for companion in segment.companions] == [
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TXN_INDEX,
    ]
    assert [p.end_offset for p in found.producer_snapshots] == [10]
    assert [w.name.working.value for w in found.working_files] == [".deleted", ".swap"]
    assert [(s.id, s.state) for s in found.snapshots] == [
        (SnapshotId(50, 2), SnapshotState.PARTIAL)
    ]
    assert found.unknown == ("notes.txt",)
    assert {(os.path.basename(o.path), o.reason) for o in found.oddities} == {
        ("00000000000000000099.index", "an index without its segment"),
        ("partition.metadata", "line 1 is not a name and a value"),
        ("sub", "not a plain file"),
        ("dangling", "a link that leads nowhere"),
    }


def test_a_log_directory_with_odd_things_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / ".lock").write_text("")
    (tmp_path / "meta.properties").write_text("version=9\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n7\n")
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    found = read_log_directory(tmp_path)
    assert [place.name for place in found.partitions] == [PartitionName("orders", 0)]
    assert found.meta is None
    assert found.high_watermarks == (PartitionOffset("orders", 0, 5),)
    assert found.clean_shutdown is not None
    assert found.clean_shutdown.broker_epoch is None
    assert found.unknown == ("lost+found", "notes.txt")
    assert {os.path.basename(oddity.path) for oddity in found.oddities} == {
        "lost+found",
        "meta.properties",
        "recovery-point-offset-checkpoint",
    }


def test_a_directory_that_cannot_be_listed_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="no such"):
        read_log_directory(tmp_path / "no")
    with pytest.raises(NotKafka, match="no such"):
        read_partition_directory(tmp_path / "no")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotKafka, match="is a file"):
        read_log_directory(tmp_path / "file")


def test_missing_permission_is_said_plainly() -> None:
    with open_directory() as folder:
        (folder / "meta.properties").write_text("version=1\n")
        read_log_directory(folder)
        (folder / "meta.properties").chmod(0)
        with another_user():
            (oddity,) = read_log_directory(folder).oddities
    assert oddity.reason.startswith("no permission")


def test_files_that_vanish_while_listing_are_no_oddity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    real = partition_dir.list_files

    def listed_then_gone(path: str, oddities: list[partition_dir.Oddity]) -> dict[str, int]:
        found = real(path, oddities)
        shutil.rmtree(path)
        return found

    monkeypatch.setattr(partition_dir, "list_files", listed_then_gone)
    found = read_partition_directory(folder)
    assert found.oddities == ()
    assert found.topic_id is None


def test_a_directory_that_is_being_written_is_read_all_the_time(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            path = folder / f"{n % 7:020d}.log"
            path.write_bytes(b"x")
            (folder / f"{n % 5:020d}.log.deleted").write_bytes(b"")
            path.unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert read_partition_directory(folder).oddities == ()
            read_log_directory(tmp_path)
    finally:
        stop.set()
        writer.join()


def test_ten_thousand_partitions_open_at_once(tmp_path: Path) -> None:
    for n in range(10_000):
        (tmp_path / f"topic-{n}").mkdir()
    assert len(read_log_directory(tmp_path).partitions) == 10_000


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("[0-9]*.log", PathKind.SEGMENT),
        ("*.index", PathKind.OFFSET_INDEX),
        ("*.timeindex", PathKind.TIME_INDEX),
        ("*.txnindex", PathKind.TXN_INDEX),
        ("*.snapshot", PathKind.PRODUCER_SNAPSHOT),
        ("[0-9]*.checkpoint", PathKind.SNAPSHOT),
        ("bootstrap.checkpoint", PathKind.BOOTSTRAP),
        ("*-offset-checkpoint", PathKind.OFFSET_CHECKPOINT),
        ("leader-epoch-checkpoint", PathKind.LEADER_EPOCHS),
        ("meta.properties", PathKind.META_PROPERTIES),
        ("partition.metadata", PathKind.PARTITION_METADATA),
        ("quorum-state", PathKind.QUORUM_STATE),
        (".kafka_cleanshutdown", PathKind.CLEAN_SHUTDOWN),
    ],
)
def test_files_are_recognised(pattern: str, kind: PathKind) -> None:
    found = data_files(pattern)
    assert found
    assert {detect(path) for path in found} == {kind}


def test_directories_are_recognised() -> None:
    assert {detect(path) for path in log_directories()} == {PathKind.LOG_DIRECTORY}
    assert {detect(path) for path in partition_directories()} == {PathKind.PARTITION_DIRECTORY}


def test_a_renamed_segment_is_recognised_by_its_bytes(tmp_path: Path) -> None:
    source = next(p for p in data_files("[0-9]*.log") if p.stat().st_size)
    copy = Path(shutil.copy(source, tmp_path / "backup-of-orders"))
    assert detect(copy) is PathKind.SEGMENT
    assert detect(copy.rename(tmp_path / "old.checkpoint")) is PathKind.SNAPSHOT


def test_a_renamed_snapshot_is_recognised_by_its_bytes(tmp_path: Path) -> None:
    for source in data_files("[0-9]*.checkpoint"):
        copy = Path(shutil.copy(source, tmp_path / source.parts[-3]))
        assert detect(copy) is PathKind.SNAPSHOT


def test_what_is_not_of_kafka_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="it is empty"):
        detect(tmp_path)
    (tmp_path / "text").write_text("hello, this is only a text file")
    with pytest.raises(NotKafka, match="segments are 20 digits"):
        detect(tmp_path / "text")
    with pytest.raises(NotKafka, match=r"log\.dirs"):
        detect(tmp_path)
    (tmp_path / "disk1").mkdir()
    (tmp_path / "disk1" / "meta.properties").write_text("version=1\n")
    with pytest.raises(NotKafka, match=r"did you mean .*disk1"):
        detect(tmp_path)
    with pytest.raises(NotKafka, match="no such"):
        detect(tmp_path / "gone")


def test_nodes_with_names_like_partitions_are_no_partitions() -> None:
    """`verify` found nothing wrong with them, as it looked into none of their files."""
    for nodes in {path.parent for path in log_directories() if path.name == "node-1"}:
        with pytest.raises(NotKafka, match=r"did you mean .*/node-\d"):
            detect(nodes)


def test_a_folder_is_a_partition_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "dbus-1").mkdir()
    (tmp_path / "dbus-1" / "session.conf").touch()
    with pytest.raises(NotKafka, match=r"log\.dirs"):
        detect(tmp_path)
    partition = next(path for path in partition_directories() if path.name == "mixed-0")
    shutil.copytree(partition, tmp_path / "mixed-0")
    assert detect(tmp_path) is PathKind.LOG_DIRECTORY
