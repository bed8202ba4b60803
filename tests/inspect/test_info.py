"""What `info` says of real directories and files equals what Kafka's tools say of them."""

from __future__ import annotations

import gzip
import os
import re
import struct
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.inspect.info import (
    FileInfo,
    LogDirectoryInfo,
    PartitionInfo,
    as_object,
    as_rows,
    info,
)
from kraftline.storage.segment import SegmentReader
from tests.another_user import another_user, open_directory
from tests.inspect.damage import FIXTURES, METADATA, SECOND, TOPICS, copy, cut, patch, positions

KILLED = FIXTURES / "killed_4_3" / "data" / "node-1"
_BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?(?:CreateTime|LogAppendTime): (-?\d+) ",
    re.M,
)


def log_directory(path: Path) -> LogDirectoryInfo:
    found = info(os.fspath(path))
    assert isinstance(found, LogDirectoryInfo)
    return found


def partition(path: Path) -> PartitionInfo:
    found = info(os.fspath(path))
    assert isinstance(found, PartitionInfo)
    return found


def file(path: Path) -> FileInfo:
    found = info(os.fspath(path))
    assert isinstance(found, FileInfo)
    return found


def kafka_says(data: Path) -> str:
    """Kafka's own dump of a file of a fixture."""
    parts = data.relative_to(FIXTURES).parts
    said = FIXTURES / parts[0] / "kafka-says" / Path(*parts[2:])
    plain = said.with_name(said.name + ".dump.txt")
    if plain.exists():
        return plain.read_text()
    packed = plain.with_name(plain.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else ""


SEGMENTS = [
    path
    for path in sorted(FIXTURES.glob("*_4_3/data/*/*/*.log"))
    if _BATCH.search(kafka_says(path))
]


def test_there_are_segments_to_compare() -> None:
    assert len(SEGMENTS) > 20


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda p: "/".join(p.parts[-3:]))
def test_a_segments_numbers_are_those_of_kafkas_dump(path: Path) -> None:
    said = [tuple(map(int, found)) for found in _BATCH.findall(kafka_says(path))]
    content = file(path).content
    assert content["first_offset"] == said[0][0]
    assert content["last_offset"] == said[-1][1]
    assert content["batches"] == len(said)
    assert content["records"] == sum(batch[2] for batch in said)
    assert content["last_timestamp"] == max(batch[3] for batch in said)


@pytest.mark.parametrize("node", [TOPICS, SECOND, METADATA, KILLED], ids=lambda p: p.parts[-3])
def test_ranges_found_at_the_ends_are_those_of_a_full_scan(node: Path) -> None:
    found = log_directory(node)
    partitions = [p for topic in found.topics for p in topic.partitions]
    for one in (*partitions, *found.others):
        whole = []
        for log in sorted(Path(one.path).glob("*.log")):
            with SegmentReader(log) as reader:
                whole += [batch for batch, _ in reader.batches()]
        if not whole:
            continue
        assert one.first_offset == whole[0].base_offset, one.path
        assert one.end_offset == max(
            whole[-1].next_offset, int(max(Path(one.path).glob("*.log")).stem)
        )
        if one.last_timestamp is not None and one.segment_count <= 2:
            assert one.last_timestamp == max(batch.max_timestamp for batch in whole)


def test_a_log_directory_says_whose_it_is_and_how_it_was_stopped() -> None:
    found = log_directory(METADATA)
    properties = dict(
        line.split("=", 1)
        for line in (METADATA / "meta.properties").read_text().splitlines()
        if "=" in line
    )
    assert found.cluster_id == properties["cluster.id"]
    assert found.node_id == int(properties["node.id"])
    assert found.directory_id == properties["directory.id"]
    assert found.clean_shutdown
    assert isinstance(found.broker_epoch, int)
    assert not log_directory(KILLED).clean_shutdown


def test_features_and_quorum_come_from_the_metadata_log() -> None:
    found = log_directory(METADATA)
    assert found.features is not None
    assert found.features["metadata.version"] > 20
    assert found.quorum is not None
    assert found.quorum.leader_id == 1
    assert found.quorum.voters is not None
    assert 1 in found.quorum.voters


def test_metadata_snapshots_are_listed_with_the_time_they_reach_to() -> None:
    log = log_directory(METADATA).metadata_log
    assert log is not None
    names = sorted(path.name for path in Path(log.path).glob("*.checkpoint"))
    assert [os.path.basename(snapshot.file) for snapshot in log.snapshots] == names
    assert all(s.last_contained_log_timestamp for s in log.snapshots if s.end_offset)


def test_topics_come_largest_first_with_all_their_bytes() -> None:
    found = log_directory(TOPICS)
    sizes = [topic.size for topic in found.topics]
    assert sizes == sorted(sizes, reverse=True)
    on_disk = sum(
        log.stat().st_size
        for log in TOPICS.glob("*/*.log")
        if "__cluster_metadata" not in str(log) and "." not in log.parent.name
    )
    assert sum(sizes) == on_disk


def test_directories_out_of_service_are_told_apart() -> None:
    states = {p.state for node in (TOPICS, SECOND, KILLED) for p in log_directory(node).others}
    assert states <= {"deleted", "future", "stray"}
    assert "future" in states
    assert "deleted" in states


def test_a_partition_shows_what_its_log_directory_checkpoints_say() -> None:
    found = partition(TOPICS / "mixed-0")
    assert found.offsets is not None
    assert found.offsets.recovery_point == found.end_offset
    assert found.offsets.high_watermark == found.end_offset
    assert found.segment_count == len(list((TOPICS / "mixed-0").glob("*.log")))
    assert [s.base_offset for s in found.segments] == sorted(
        int(path.stem) for path in (TOPICS / "mixed-0").glob("*.log")
    )


def test_a_preallocated_segment_ends_in_zeros() -> None:
    found = partition(KILLED / "preallocated-0")
    assert found.segments[-1].tail == "zeros"
    assert found.segments[-1].end_offset is not None


def test_an_index_full_of_zeros_is_not_read_in_full(tmp_path: Path) -> None:
    copied = copy(TOPICS / "transactions-0", tmp_path)
    before = partition(copied).segments[-1]
    for suffix, size in (("index", 8), ("timeindex", 12)):
        path = copied / f"00000000000000000003.{suffix}"
        with path.open("r+b") as opened:
            opened.truncate(size * 1_000_000)
    after = partition(copied).segments[-1]
    assert (after.end_offset, after.last_timestamp) == (before.end_offset, before.last_timestamp)


def test_an_index_that_leads_astray_does_not_mislead(tmp_path: Path) -> None:
    copied = copy(TOPICS / "transactions-0", tmp_path)
    before = partition(copied).end_offset
    index = copied / "00000000000000000003.index"
    patch(index, index.stat().st_size - 4, struct.pack(">i", 777))
    assert partition(copied).end_offset == before


def test_an_old_message_set_begins_with_its_first_inner_offset() -> None:
    for path in sorted((FIXTURES / "topics_2_8" / "data" / "broker-0").glob("v?-gzip-0")):
        assert partition(path).first_offset == 0


def test_damage_is_told_and_does_not_stop_the_answer(tmp_path: Path) -> None:
    node = copy(TOPICS, tmp_path)
    (node / "meta.properties").write_text("version=9\n")
    (node / "mixed-0" / "leader-epoch-checkpoint").write_text("x")
    found = log_directory(node)
    assert len(found.unreadable) == 2
    assert found.topics


def test_a_cut_snapshot_is_told_wherever_it_is_cut(tmp_path: Path) -> None:
    whole = sorted((METADATA / "__cluster_metadata-0").glob("*.checkpoint"))[-1]
    starts = positions(whole)
    copied = tmp_path / whole.name
    for size in (0, 10, starts[-1] - 1, starts[-1], starts[-1] + 1):
        copied.write_bytes(whole.read_bytes()[:size])
        found = file(copied)
        assert found.content["end_offset"] == int(whole.name.split("-")[0])
        (line,) = found.unreadable
        assert line.startswith(f"position {max((p for p in starts if p <= size), default=0)}: ")


def test_a_partition_that_may_not_be_read_is_here_all_the_same() -> None:
    with open_directory() as where:
        node = copy(TOPICS, where)
        log_directory(node)
        (node / "mixed-0").chmod(0)
        with another_user():
            found = log_directory(node)
    assert any("mixed-0: no permission" in line for line in found.unreadable)
    assert not any("mixed-0" in line for line in found.odd)


def test_odd_things_are_told(tmp_path: Path) -> None:
    node = copy(TOPICS, tmp_path)
    (node / "notes.txt").write_text("?")
    (node / "mixed-0" / "core.123").write_text("?")
    (node / "mixed-0" / "00000000000000009999.index").write_bytes(b"")
    said = "\n".join(log_directory(node).odd)
    assert "notes.txt" in said
    assert "core.123" in said
    assert "an index without its segment" in said


def test_a_half_written_batch_is_a_partial_tail(tmp_path: Path) -> None:
    copied = copy(TOPICS / "transactions-0", tmp_path)
    log = copied / "00000000000000000003.log"
    cut(log, log.stat().st_size - 3)
    assert partition(copied).segments[-1].tail == "partial"


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("transactions-0/00000000000000000003.index", "entries", 5),
        ("transactions-0/00000000000000000003.timeindex", "entries", 6),
        ("transactions-0/00000000000000000003.txnindex", "aborted_transactions", 6),
        ("meta.properties", "node_id", 1),
        (".kafka_cleanshutdown", "version", 0),
        ("__cluster_metadata-0/quorum-state", "leader_id", 1),
    ],
)
def test_every_kind_of_file_has_a_summary(path: str, key: str, value: int) -> None:
    said = kafka_says(TOPICS / path)
    found = file(TOPICS / path)
    assert found.content[key] == value
    if said:
        assert len([line for line in said.splitlines() if ": " in line]) == value


def test_every_file_of_every_fixture_is_explained() -> None:
    for path in sorted(FIXTURES.glob("*_4_3/data/*/**/*")):
        if path.is_file() and path.name != ".lock" and not path.name.endswith(".tmp"):
            found = file(path)
            assert found.kind
            assert found.unreadable == ()


def test_objects_and_rows_are_plain_data() -> None:
    whole = as_object(log_directory(TOPICS))
    assert whole["kind"] == "log directory"
    rows = as_rows(log_directory(TOPICS))
    assert {row["topic"] for row in rows} >= {"mixed", "transactions", "__cluster_metadata"}
    assert all(not isinstance(value, dict) for row in rows for value in row.values())
    segments = as_rows(partition(TOPICS / "mixed-0"))
    assert [row["base_offset"] for row in segments] == sorted(
        row["base_offset"] for row in segments
    )


def test_what_is_not_kafkas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotKafka):
        info(os.fspath(tmp_path))


def test_cut_and_random_files_are_explained_or_refused(tmp_path: Path) -> None:
    for path in sorted(TOPICS.glob("transactions-0/*")):
        whole = path.read_bytes()
        for size in range(0, len(whole), max(1, len(whole) // 9)):
            target = tmp_path / path.name
            target.write_bytes(whole[:size])
            assert isinstance(info(os.fspath(target)), FileInfo)
            target.write_bytes(os.urandom(size))
            assert isinstance(info(os.fspath(target)), FileInfo)
