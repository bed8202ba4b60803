"""Snapshots of any offset: what Kafka wrote there, and nothing that is lost in silence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.inspect.history import open_history, parse_moment
from kraftline.inspect.snapshots import Refused, State, for_release, losses, read_state
from kraftline.inspect.snapshots.writing import target_of, write_state
from kraftline.inspect.verify.replay_difference import differences
from kraftline.inspect.verify.replay_reading import snapshot_image
from kraftline.metadata.faults import UnwritableMetadata
from kraftline.metadata.features import from_release
from kraftline.schema.control.voters_record import Voter
from kraftline.schema.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kraftline.schema.metadata.frame import decode_record
from kraftline.schema.types import Message
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import SnapshotReader
from tests.inspect.damage import FIXTURES, METADATA, copy, flip
from tests.inspect.metadata_logs import cluster, make_segment
from tests.metadata.replaying import read_batches

DIRECTORIES = sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0"))
SNAPSHOTS = [
    path
    for directory in DIRECTORIES
    for path in sorted(directory.glob("*.checkpoint"))
    if not path.name.startswith("0" * 20)
]
# What Kafka's own images do not keep either: the migration's state, and who asked for ids.
_UNKEPT = {"ZkMigrationStateRecord", "ProducerIdsRecord"}


def short(path: Path) -> str:
    return f"{path.parents[3].name}-{path.parents[1].name}-{path.name[16:20]}"


def state(path: Path, moment: str | None = None) -> State:
    return read_state([str(path)], None if moment is None else parse_moment(moment))


def written(found: State, folder: Path) -> Path:
    return Path(write_state(found, target_of(str(folder), found)).path)


def as_a_set(messages: Iterable[Message]) -> set[str]:
    """Records without the order of lists that have none: Kafka writes maps as they come."""
    return {
        repr({name: _ordered(getattr(each, name)) for name in each.__struct_fields__})
        for each in messages
        if type(each).__name__ not in _UNKEPT
    }


def _ordered(value: object) -> object:
    if isinstance(value, tuple) and value and isinstance(value[0], Message):
        return sorted(map(repr, value))
    return value


def messages(reader: SnapshotReader) -> list[Message]:
    return [decode_record(record.value or b"")[0] for record in reader.records()]


def voters(reader: SnapshotReader) -> set[Voter]:
    return set() if reader.voters is None else set(reader.voters.voters)


@pytest.mark.parametrize("kafkas", SNAPSHOTS, ids=short)
def test_as_of_a_snapshots_end_is_that_snapshot(kafkas: Path, tmp_path: Path) -> None:
    with SnapshotReader(kafkas) as theirs:
        assert theirs.id is not None
        found = state(kafkas.parent, str(theirs.id.end_offset - 1))
        ours_at = written(found, tmp_path)
        assert ours_at.name == kafkas.name
        with SnapshotReader(ours_at) as ours:
            assert ours.header == theirs.header
            assert ours.kraft_version == theirs.kraft_version
            assert voters(ours) == voters(theirs)
            assert as_a_set(messages(ours)) == as_a_set(messages(theirs))


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda p: f"{p.parents[2].name}")
def test_what_is_written_reads_back_to_the_same_image(directory: Path, tmp_path: Path) -> None:
    found = state(directory)
    file = written(found, tmp_path)
    again = state(file)
    assert differences(found.image, again.image) == []
    assert again.id == found.id
    assert again.log_time == found.log_time
    assert (again.kraft_version, again.voters) == (found.kraft_version, found.voters)
    assert open_history([str(file)]).trouble == []


def test_batches_have_as_many_records_as_kafkas(tmp_path: Path) -> None:
    found = state(METADATA)
    with SnapshotReader(written(found, tmp_path)) as reader:
        counts = [batch.count for batch in reader.batches()]
    assert counts == [54]  # one of at most 1,024


def test_a_time_is_as_good_as_an_offset() -> None:
    by_offset = state(METADATA, "137")
    by_time = state(METADATA, "2026-11-15T22:27:39.882Z")
    assert by_time.id == by_offset.id == SnapshotId(138, 1)


def markers(directory: Path) -> tuple[list[int], list[int]]:
    """Where transactions begin, and where they end or are aborted."""
    found: tuple[list[int], list[int]] = [], []
    for batch in read_batches(sorted(directory.glob("*.log"))):
        for offset, message, _ in batch.records:
            if isinstance(message, BeginTransactionRecord):
                found[0].append(offset)
            elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
                found[1].append(offset)
    return found


def test_a_log_without_leader_epochs_is_refused(tmp_path: Path) -> None:
    """No Kafka could read the name of such a snapshot."""
    with pytest.raises(Refused, match="has no leader epoch"):
        state(make_segment(tmp_path, cluster(), epoch=-1))


def test_an_offset_inside_a_transaction_is_refused() -> None:
    aborted = FIXTURES / "aborted_4_3" / "data" / "node-1"
    refused = {}
    for offset in range(51):
        try:
            state(aborted, str(offset))
        except Refused as error:
            refused[offset] = str(error)
    # The bootstrap records are one transaction, the one that was aborted is another.
    begins, ends = markers(aborted / "__cluster_metadata-0")
    assert len(begins) == len(ends) == 2
    inside = [range(*pair) for pair in zip(begins, ends, strict=True)]
    assert list(refused) == [*inside[0], *inside[1]]
    last = refused[ends[1] - 1]
    assert f"that began at offset {begins[1]}:" in last
    assert f"as of offset {begins[1] - 1}," in last


def test_a_formatted_directory_that_never_started_is_refused() -> None:
    with pytest.raises(Refused, match="never started"):
        state(FIXTURES / "metadata_4_3" / "data" / "node-1" / "bootstrap.checkpoint")


def test_a_snapshot_whose_name_does_not_tell_its_end_is_refused(tmp_path: Path) -> None:
    (source,) = (METADATA / "__cluster_metadata-0").glob("*188-*.checkpoint")
    named = tmp_path / "mended.checkpoint"
    named.write_bytes(source.read_bytes())
    with pytest.raises(Refused, match=r"mended\.checkpoint: a snapshot's name says"):
        state(named)


def test_a_log_without_its_beginning_is_refused(tmp_path: Path) -> None:
    partition = copy(
        FIXTURES / "metadata_3_9" / "data" / "node-1" / "__cluster_metadata-0", tmp_path
    )
    for path in partition.iterdir():
        if path.name.startswith("0" * 20) or path.suffix == ".checkpoint":
            path.unlink()
    with pytest.raises(Refused, match="whatever was set up earlier"):
        state(partition)


def test_damage_is_told_of_and_bridged_by_a_snapshot(tmp_path: Path) -> None:
    partition = copy(METADATA / "__cluster_metadata-0", tmp_path)
    flip(partition / "00000000000000000000.log", 700)
    found = state(partition)
    assert found.id == SnapshotId(299, 2)
    assert differences(state(METADATA).image, found.image) == []
    assert any("checksum" in note for note in found.notes)


def test_a_directory_of_nothing_is_not_kafkas(tmp_path: Path) -> None:
    with pytest.raises(NotKafka):
        state(tmp_path)


def test_an_older_release_loses_what_it_has_no_words_for(tmp_path: Path) -> None:
    found = state(METADATA)
    assert losses(found) == []
    older, lost = for_release(found, from_release("3.9"))
    assert "the cordoned log directories of one or more brokers" in lost
    assert "the eligible leader replicas of one or more partitions" in lost
    assert "group.version 1, which goes down to 0" in lost
    with pytest.raises(UnwritableMetadata):
        write_state(older, str(tmp_path / "x.checkpoint"))
    assert list(tmp_path.iterdir()) == []
    file = write_state(older, target_of(str(tmp_path), older), accept_loss=True)
    image = snapshot_image(file.path)
    assert image.features.metadata_version == from_release("3.9")
    assert not image.features.levels
    assert image.topics.ids == found.image.topics.ids


def test_voters_in_the_log_cannot_go_back_to_where_there_were_none() -> None:
    with pytest.raises(Refused, match=r"kraft\.version 1"):
        for_release(state(METADATA), from_release("3.8"))


def test_a_newer_release_is_for_a_running_controller() -> None:
    with pytest.raises(Refused, match="only a running controller"):
        for_release(
            state(FIXTURES / "metadata_3_9" / "data" / "node-1", "200"), from_release("4.3")
        )


def test_nothing_is_overwritten_unless_told(tmp_path: Path) -> None:
    found = state(METADATA)
    file = written(found, tmp_path)
    with pytest.raises(Refused, match="there already"):
        target_of(str(tmp_path), found)
    before = file.read_bytes()
    write_state(found, target_of(str(tmp_path), found, force=True))
    assert len(file.read_bytes()) == len(before)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_file_that_is_read_is_never_written(tmp_path: Path) -> None:
    partition = copy(METADATA / "__cluster_metadata-0", tmp_path)
    found = state(partition, "187")
    with pytest.raises(Refused, match="nothing is done in place"):
        target_of(str(partition), found, force=True)
