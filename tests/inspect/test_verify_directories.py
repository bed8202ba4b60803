"""Snapshots, small files, checkpoints, and directories that cannot be read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.records import Record, batches, build_batch
from tests.another_user import another_user, open_directory
from tests.inspect.damage import (
    EPOCH,
    METADATA,
    SECOND,
    TOPICS,
    change_records,
    check,
    codes,
    copy,
    cut,
    findings,
    flip,
    notes,
    patch,
    positions,
)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return copy(TOPICS, tmp_path)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = copy(METADATA / "__cluster_metadata-0", tmp_path)
    return max(folder.glob("*.checkpoint"))


def test_a_snapshot_without_its_footer_is_found(snapshot: Path) -> None:
    cut(snapshot, positions(snapshot)[-1])
    assert codes(snapshot) == ["snapshot-footer"]


def test_a_snapshot_without_its_header_is_found(snapshot: Path) -> None:
    data, places = snapshot.read_bytes(), positions(snapshot)
    snapshot.write_bytes(data[places[1] :])
    assert {"snapshot-header", "snapshot-offset"} <= set(codes(snapshot))


def test_a_snapshot_with_two_footers_is_found(snapshot: Path) -> None:
    data, places = snapshot.read_bytes(), positions(snapshot)
    footer = bytearray(data[places[-1] :])
    (offset,) = struct.unpack_from(">q", footer)
    struct.pack_into(">q", footer, 0, offset + 1)
    snapshot.write_bytes(data + footer)
    (found,) = findings(snapshot)
    assert found.code == "snapshot-footer"
    assert "2 snapshot footers" in found.problem


def test_a_snapshot_of_another_epoch_than_its_name_is_found(snapshot: Path) -> None:
    for position in positions(snapshot):
        patch(snapshot, position + EPOCH, struct.pack(">i", 77))
    assert codes(snapshot) == ["snapshot-epoch"]


def test_a_cut_snapshot_is_found(snapshot: Path) -> None:
    cut(snapshot, snapshot.stat().st_size - 4)
    assert codes(snapshot) == ["tail-partial", "snapshot-footer"]


def test_a_damaged_snapshot_is_found(snapshot: Path) -> None:
    flip(snapshot, positions(snapshot)[1] + 80)
    assert "batch-crc" in codes(snapshot)


def test_a_snapshot_with_a_gap_is_found(snapshot: Path) -> None:
    data = snapshot.read_bytes()
    last = list(batches(data))[-1]
    patch(snapshot, last.position, struct.pack(">q", last.base_offset + 3))
    assert "snapshot-offset" in codes(snapshot)


def test_a_metadata_log_that_no_snapshot_reaches_is_found(tmp_path: Path) -> None:
    folder = copy(METADATA / "__cluster_metadata-0", tmp_path)
    logs = sorted(folder.glob("*.log"))
    assert len(logs) > 1
    for path in folder.iterdir():
        if path.name.startswith(logs[0].stem) and path.suffix != ".checkpoint":
            path.unlink()
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    assert codes(folder) == ["snapshot-missing"]


def test_a_damaged_producer_snapshot_is_found(node: Path) -> None:
    path = max((node / "transactions-0").glob("*.snapshot"))
    flip(path, 20)
    (found,) = findings(node)
    assert (found.code, found.file) == ("producer-snapshot", str(path))


def test_a_producer_snapshot_that_knows_the_future_is_found(node: Path) -> None:
    path = max((node / "transactions-0").glob("*.snapshot"))
    path.rename(path.with_name("00000000000000000001.snapshot"))
    found = findings(node)
    assert {f.code for f in found} == {"producer-snapshot"}
    assert "below 1" in found[0].problem


QUORUM_STATE = (
    '{{"leaderId":{leader},"leaderEpoch":3,"votedId":-1,'
    '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}}'
)


def test_an_epoch_of_the_quorum_that_kafka_would_pass_over_is_found(node: Path) -> None:
    """Kafka 4.3.1 starts, warns, and takes the epoch of the log."""
    state = QUORUM_STATE.format(leader=1).replace('"leaderEpoch":3', '"leaderEpoch":-5')
    (node / "__cluster_metadata-0" / "quorum-state").write_text(state)
    (finding,) = findings(node)
    assert (finding.code, finding.problem) == (
        "quorum-state",
        "leader epoch -5: epochs begin at 0",
    )
    assert "forgets whom this node voted for" in finding.meaning


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("meta.properties", "version=7\n", "meta-properties"),
        (".kafka_cleanshutdown", "{oops", "clean-shutdown"),
        ("recovery-point-offset-checkpoint", "0\n5\nmixed 0 1\n", "checkpoint-file"),
        ("replication-offset-checkpoint", "0\n1\nmixed zero 1\n", "checkpoint-file"),
        ("mixed-0/leader-epoch-checkpoint", "0\n1\n", "leader-epochs"),
        ("mixed-0/leader-epoch-checkpoint", "0\n2\n3 0\n1 9\n", "leader-epochs"),
        ("mixed-0/partition.metadata", "version: 0\n", "partition-metadata"),
        ("__cluster_metadata-0/quorum-state", "{}", "quorum-state"),
        ("__cluster_metadata-0/quorum-state", QUORUM_STATE.format(leader=-7), "quorum-state"),
        (
            "__cluster_metadata-0/partition.metadata",
            "version: 0\ntopic_id: kL8qZ1wQTdG1Y3Vd3f0b8A",
            "partition-metadata",
        ),
    ],
)
def test_a_small_file_that_kafka_would_refuse_is_found(
    node: Path, file: str, content: str, code: str
) -> None:
    (node / file).write_text(content)
    found = findings(node)
    assert code in {f.code for f in found}
    assert all(f.meaning for f in found)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("recovery-point-offset-checkpoint", "recovery-point"),
        ("replication-offset-checkpoint", "high-watermark"),
        ("log-start-offset-checkpoint", "log-start-offset"),
    ],
)
def test_a_checkpoint_beyond_the_end_of_its_log_is_found(node: Path, file: str, code: str) -> None:
    (node / file).write_text("0\n1\nmixed 0 999999\n")
    (found,) = findings(node)
    assert (found.code, found.file) == (code, str(node / file))
    assert "mixed-0" in found.problem
    assert "the log ends at" in found.problem


def test_a_partition_that_only_a_checkpoint_knows_is_a_note(node: Path) -> None:
    (node / "recovery-point-offset-checkpoint").write_text("0\n1\nghost 3 17\n")
    assert codes(node) == []
    assert any("ghost-3" in note.problem for note in notes(node))


def test_a_directory_that_would_keep_kafka_from_starting_is_found(node: Path) -> None:
    (node / "lost+found").mkdir()
    assert codes(node) == ["directory-name"]


def test_a_directory_in_the_place_of_a_segment_is_found(node: Path) -> None:
    (node / "mixed-0" / "00000000000000000999.log").mkdir()
    (found,) = findings(node)
    assert found.code == "unreadable"


def test_what_may_not_be_read_is_found() -> None:
    with open_directory() as folder:
        node = copy(TOPICS, folder)
        assert codes(node) == []
        (node / "mixed-0" / "00000000000000000000.log").chmod(0)
        (node / "transactions-0").chmod(0)
        with another_user():
            found = codes(node)
    assert found.count("unreadable") == 2


def test_a_missing_file_among_the_paths_is_refused_before_anything_is_read(node: Path) -> None:
    with pytest.raises(NotKafka, match="no such file"):
        check(node, node / "nowhere")


def test_a_directory_of_others_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotKafka, match="not a directory of Kafka's"):
        check(tmp_path)


def test_a_swap_file_is_checked_and_others_are_named(node: Path) -> None:
    partition = node / "mixed-0"
    data = (partition / "00000000000000000000.log").read_bytes()
    swap = partition / "00000000000000000000.log.swap"
    swap.write_bytes(data)
    (partition / "00000000000000000000.log.cleaned").write_bytes(b"nonsense")
    assert codes(node) == []
    flip(swap, 100)
    assert codes(node) == ["batch-crc"]


def test_a_hole_in_a_snapshots_payload_is_found_with_its_type(snapshot: Path) -> None:
    where = next(b.position for b in batches(snapshot.read_bytes()) if not b.is_control)

    def longer(records: list[Record]) -> list[Record]:
        first = records[0]
        assert first.value is not None
        return [
            Record(first.offset, first.timestamp, first.key, first.value + b"\x00"),
            *records[1:],
        ]

    change_records(snapshot, where, longer)
    (found,) = findings(snapshot)
    assert found.code == "record-leftover"
    assert "RECORD v" in found.problem


def test_an_empty_log_directory_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    assert codes(tmp_path) == []


def test_a_live_segment_is_read_while_it_grows(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    log = partition / "00000000000000000000.log"
    record = Record(0, 1, None, b"x" * 100)
    whole = build_batch([record], partition_leader_epoch=0)
    log.write_bytes(whole + whole[:30])
    assert codes(partition) == []
    assert [n.code for n in notes(partition) if n.code.startswith("tail")] == ["tail-partial"]


def test_leader_epochs_that_an_empty_checkpoint_has_lost_are_found(tmp_path: Path) -> None:
    node = copy(SECOND, tmp_path)
    partition = node / "codec-none-0"
    (partition / "leader-epoch-checkpoint").write_text("")
    for path in (node, partition):
        found = findings(path)
        assert {finding.code for finding in found} == {"leader-epochs"}
        assert "epoch 0, leader-epoch-checkpoint says nothing" in found[0].problem


def test_leader_epochs_before_the_first_that_is_known_are_worth_a_note(tmp_path: Path) -> None:
    """So a broker leaves them that is killed after records were deleted."""
    node = copy(SECOND, tmp_path)
    partition = node / "codec-none-0"
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n2 75\n")
    for path in (node, partition):
        assert codes(path) == []
        (note,) = [each for each in notes(path) if each.code == "leader-epochs"]
        assert "epoch 0, leader-epoch-checkpoint says nothing" in note.problem


def test_leader_epochs_before_the_log_start_may_be_forgotten(tmp_path: Path) -> None:
    node = copy(SECOND, tmp_path)
    (node / "codec-none-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 49\n2 75\n")
    # As DeleteRecords leaves it: the epoch at the log's start begins there.
    starts = (node / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    lines = ["0", str(len(starts) + 1), *starts, "codec-none 0 49"]
    (node / "log-start-offset-checkpoint").write_text("\n".join(lines) + "\n")
    assert codes(node) == []


def test_two_topics_of_one_id_are_found(tmp_path: Path) -> None:
    node = copy(SECOND, tmp_path)
    wrong = node / "odd-0" / "partition.metadata"
    wrong.write_bytes((node / "codec-none-0" / "partition.metadata").read_bytes())
    (found,) = findings(node)
    assert (found.code, found.file) == ("partition-metadata", str(wrong))
    assert "which partitions of codec-none have" in found.problem


def test_two_ids_of_one_topic_are_found(tmp_path: Path) -> None:
    node = copy(SECOND, tmp_path)
    (node / "codec-none-0").rename(node / "transactions-0")
    (found,) = findings(node)
    assert found.code == "partition-metadata"
    assert "other partitions of transactions have" in found.problem
