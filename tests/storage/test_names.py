"""Names of partition directories, segment files and snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.storage.names import (
    FileKind,
    PartitionName,
    PartitionState,
    SegmentFileName,
    SnapshotId,
    SnapshotName,
    SnapshotState,
    Working,
    base_offset_of,
    format_partition,
    format_segment_file,
    format_snapshot,
    parse_partition,
    parse_segment_file,
    parse_snapshot,
)
from tests.storage.fixture_files import partition_directories

HEX = "0123456789abcdef" * 2
topics = st.text("abcXYZ019._-", min_size=1, max_size=249)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", PartitionName("orders", 0)),
        ("a-b.c-12", PartitionName("a-b.c", 12)),
        ("my-topic-1-2", PartitionName("my-topic-1", 2)),
        ("__cluster_metadata-0", PartitionName("__cluster_metadata", 0)),
        (f"a.b-3.{HEX}-delete", PartitionName("a.b", 3, PartitionState.DELETED, HEX)),
        (f"a-delete-3.{HEX}-future", PartitionName("a-delete", 3, PartitionState.FUTURE, HEX)),
        (f"x-0.{HEX}-stray", PartitionName("x", 0, PartitionState.STRAY, HEX)),
        ("x-stray-0", PartitionName("x-stray", 0)),
        ("x-delete", None),
        ("x-0-delete", None),
        ("lost+found", None),
        ("remote-log-index-cache", None),
        ("-0", None),
        ("x-", None),
        ("x-2147483648", None),
        ("x-²", None),
        ("", None),
    ],
)
def test_partition_directory_names(name: str, expected: PartitionName | None) -> None:
    assert parse_partition(name) == expected
    if expected is not None:
        assert format_partition(expected) == name


@given(topics, st.integers(0, 2**31 - 1), st.sampled_from(PartitionState))
def test_a_partition_name_survives_writing_and_reading(
    topic: str, partition: int, state: PartitionState
) -> None:
    name = format_partition(PartitionName(topic, partition, state))
    parsed = parse_partition(name)
    assert parsed is not None
    assert parsed.partition == partition
    assert parsed.state is state
    if state in (PartitionState.DELETED, PartitionState.STRAY):
        assert len(name) <= 255
        assert topic.startswith(parsed.topic)
    else:
        assert parsed.topic == topic


def test_every_partition_directory_of_the_fixtures_is_recognised() -> None:
    found = [parse_partition(path.name) for path in partition_directories()]
    assert found
    assert None not in found


def test_the_longest_topic_is_cut_as_kafka_cuts_it() -> None:
    name = format_partition(PartitionName("n" * 249, 0, PartitionState.DELETED, HEX))
    assert name == "n" * 213 + f"-0.{HEX}-delete"
    assert len(name) == 255


@pytest.mark.parametrize("kind", FileKind)
@pytest.mark.parametrize("working", Working)
@pytest.mark.parametrize("offset", [0, 42, 2**63 - 1])
def test_segment_file_names(kind: FileKind, working: Working, offset: int) -> None:
    name = format_segment_file(offset, kind, working)
    assert len(name.split(".")[0]) == 20
    assert parse_segment_file(name) == SegmentFileName(offset, kind, working)


@pytest.mark.parametrize(
    "name", ["1.log.gz", "x.log", "-1.log", "9223372036854775808.log", "1.logs", "1log", ".log"]
)
def test_other_files_are_no_segment_files(name: str) -> None:
    assert parse_segment_file(name) is None


def test_unpadded_names_of_old_releases_are_read() -> None:
    assert parse_segment_file("42.log") == SegmentFileName(42, FileKind.LOG)
    assert base_offset_of("/x/y-0/42.index") == 42
    assert base_offset_of("/x/y-0/other") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "00000000000000000103-0000000001.checkpoint",
            SnapshotName(SnapshotId(103, 1)),
        ),
        (
            "00000000000000000103-0000000001-1234567890.checkpoint.part",
            SnapshotName(SnapshotId(103, 1), SnapshotState.PARTIAL),
        ),
        (
            "00000000000000000103-0000000001.checkpoint.part",
            SnapshotName(SnapshotId(103, 1), SnapshotState.PARTIAL),
        ),
        (
            "00000000000000000103-0000000001.checkpoint.deleted",
            SnapshotName(SnapshotId(103, 1), SnapshotState.DELETED),
        ),
        ("bootstrap.checkpoint", None),
        ("103-1.checkpoint", None),
        ("00000000000000000103-9999999999.checkpoint", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_snapshot_names(name: str, expected: SnapshotName | None) -> None:
    assert parse_snapshot(name) == expected


def test_snapshot_names_are_written_as_kafka_writes_them() -> None:
    assert format_snapshot(SnapshotId(7, 3)) == "00000000000000000007-0000000003.checkpoint"
