"""The audit of the quorum: kraft.version and voters of a snapshot against the control records of
its log; and metadata directories that go by another name."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from kraftline.schema.control.voters_record import Endpoint, Voter, VotersRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter
from tests.inspect.damage import FIXTURES, METADATA, TOPICS, codes, copy, findings, flip, notes

FIRST = "00000000000000000098-0000000001.checkpoint"
THIRD = "00000000000000000188-0000000001.checkpoint"
UPGRADED = FIXTURES / "upgraded_4_3" / "data" / "node-1" / "__cluster_metadata-0"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return copy(METADATA / "__cluster_metadata-0", tmp_path)


def voters_of(path: Path) -> tuple[Voter, ...]:
    with SnapshotReader(path) as reader:
        return () if reader.voters is None else reader.voters.voters


def rewrite(path: Path, kraft_version: int, *voters: Voter) -> None:
    """Write a snapshot again with another quorum, all else being the same."""
    with SnapshotReader(path) as reader:
        assert reader.id is not None
        values = [record.value or b"" for record in reader.records()]
        path.unlink()
        with SnapshotWriter(
            path.parent,
            reader.id,
            last_contained_log_timestamp=reader.header.last_contained_log_timestamp,
            kraft_version=kraft_version,
            voters=VotersRecord(voters=voters) if voters else None,
        ) as writer:
            writer.append(values)
            writer.freeze()
    path.chmod(0o644)


def test_a_voter_that_the_log_does_not_name_is_a_finding(partition: Path) -> None:
    (one,) = voters_of(partition / THIRD)
    two = msgspec.structs.replace(one, voter_id=2)
    rewrite(partition / THIRD, 1, one, two)
    (finding,) = findings(partition)
    assert finding.code == "snapshot-quorum"
    assert finding.file.endswith(THIRD)
    assert finding.offset == 188
    assert "the log up to offset 187: voters 1, 2 instead of 1" in finding.problem
    assert finding.meaning


def test_a_snapshot_without_its_quorum_is_a_finding(partition: Path) -> None:
    rewrite(partition / FIRST, 0)
    (finding,) = findings(partition)
    assert "kraft.version 0 instead of 1, voters none instead of 1" in finding.problem


def test_a_voter_elsewhere_is_a_finding_that_says_where(partition: Path) -> None:
    (one,) = voters_of(partition / THIRD)
    moved = msgspec.structs.replace(one, voter_directory_id=Uuid(b"another-disk----"))
    rewrite(partition / THIRD, 1, moved)
    (finding,) = findings(partition)
    assert f"voter 1 with directory {moved.voter_directory_id} instead of" in finding.problem
    rewrite(
        partition / THIRD,
        1,
        msgspec.structs.replace(one, endpoints=(Endpoint(name="C", host="h", port=1),)),
    )
    (finding,) = findings(partition)
    assert "voter 1 with listeners C://h:1 instead of CONTROLLER://" in finding.problem


def test_the_order_of_voters_does_not_matter(tmp_path: Path) -> None:
    partition = copy(UPGRADED, tmp_path)
    newest = sorted(partition.glob("*.checkpoint"))[-1]
    voters = voters_of(newest)
    assert len(voters) == 3
    rewrite(newest, 1, *reversed(voters))
    assert codes(partition) == []


def test_the_quorum_changes_where_the_log_changes_it(tmp_path: Path) -> None:
    """kraft.version 1 begins at offset 627, which is the end of one snapshot: not yet in it."""
    partition = copy(UPGRADED, tmp_path)
    newest = sorted(partition.glob("*.checkpoint"))[-1]
    rewrite(partition / "00000000000000000627-0000000001.checkpoint", 1, *voters_of(newest))
    (finding,) = findings(partition)
    assert "up to offset 626: kraft.version 1 instead of 0" in finding.problem


def test_a_quorum_behind_a_gap_is_taken_from_the_snapshot(partition: Path) -> None:
    log = partition / "00000000000000000000.log"
    flip(log, 70)  # in the batch that has the voters
    assert "snapshot-quorum" not in codes(partition)


@pytest.mark.parametrize("name", ["backup", "metadata-2026", "node-1.copy"])
def test_a_metadata_directory_of_another_name_is_audited(tmp_path: Path, name: str) -> None:
    partition = copy(METADATA / "__cluster_metadata-0", tmp_path).rename(tmp_path / name)
    assert codes(partition) == []
    (one,) = voters_of(partition / THIRD)
    rewrite(partition / THIRD, 1, msgspec.structs.replace(one, voter_id=7))
    assert codes(partition) == ["snapshot-quorum"]


def test_copies_of_other_names_are_compared(tmp_path: Path) -> None:
    one = copy(METADATA / "__cluster_metadata-0", tmp_path)
    other = tmp_path / "backup"
    shutil.copytree(one, other)
    (voter,) = voters_of(other / THIRD)
    rewrite(other / THIRD, 1, msgspec.structs.replace(voter, voter_id=7))
    assert sorted(codes(one, other)) == ["snapshot-divergence", "snapshot-quorum"]


def test_the_log_of_a_topic_of_another_name_is_no_metadata(tmp_path: Path) -> None:
    source = next(
        path
        for path in sorted(TOPICS.iterdir())
        if (path / "partition.metadata").exists() and not path.name.startswith("__")
    )
    partition = copy(source, tmp_path).rename(tmp_path / "backup")
    assert codes(partition) == codes(source)
    assert not any(note.code == "snapshot-replay" for note in notes(partition))
