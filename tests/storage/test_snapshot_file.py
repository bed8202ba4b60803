"""Metadata snapshots and bootstrap.checkpoint."""

from __future__ import annotations

import json
import stat
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.errors import BadData, Corrupt, NotKafka, NotRepresentable, Truncated
from kraftline.records.control import build_control_batch
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.storage.names import SnapshotId, parse_snapshot
from kraftline.storage.segment import SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter, write_bootstrap
from tests.fixture_files import name_of, says
from tests.storage.batches import one_batch
from tests.storage.fixture_files import data_files

SNAPSHOTS = data_files("*.checkpoint")


def replaying(times: list[int]) -> Callable[[], int]:
    """A clock that gives these times, one per batch."""
    left = iter(times)
    return lambda: next(left)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_snapshots_of_kafka_hold_what_kafka_says(path: Path) -> None:
    said = says(path, "records.jsonl")
    with SnapshotReader(path) as snapshot:
        values = [record.value for record in snapshot.records()]
    if said is not None:
        rows = [json.loads(line) for line in said.splitlines()]
        assert values == [b64decode(r["value"]) for r in rows if not r["isControl"]]


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_snapshots_written_again_are_the_same_bytes(path: Path, tmp_path: Path) -> None:
    with SegmentReader(path) as reader:
        clock = replaying([batch.max_timestamp for batch, _ in reader.batches()])
    with SnapshotReader(path) as snapshot:
        values = [record.value or b"" for record in snapshot.records()]
        if snapshot.id is None:
            again = Path(write_bootstrap(tmp_path, values, clock=clock))
        else:
            with SnapshotWriter(
                tmp_path,
                snapshot.id,
                last_contained_log_timestamp=snapshot.header.last_contained_log_timestamp,
                kraft_version=snapshot.kraft_version,
                voters=snapshot.voters,
                clock=clock,
            ) as writer:
                writer.append(values)
                assert writer.freeze() == path.stat().st_size
            again = Path(writer.path)
    assert again.name == path.name
    assert again.read_bytes() == path.read_bytes()
    assert list(tmp_path.iterdir()) == [again]


@given(
    st.lists(st.lists(st.binary(max_size=200), min_size=1, max_size=5), max_size=12),
    st.integers(0, 2**62),
    st.integers(0, 2**31 - 1),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[bytes]],
    end_offset: int,
    epoch: int,
) -> None:
    folder = tmp_path_factory.mktemp("snapshot")
    id = SnapshotId(end_offset, epoch)
    with SnapshotWriter(folder, id, last_contained_log_timestamp=77, max_batch_bytes=1200) as out:
        for group in groups:
            out.append(group)
        out.freeze()
    with SnapshotReader(out.path) as snapshot:
        assert snapshot.id == id
        assert snapshot.header.last_contained_log_timestamp == 77
        assert [r.value for r in snapshot.records()] == [v for group in groups for v in group]
        assert all(batch.size_in_bytes <= 1200 for batch in snapshot.batches())


def test_a_full_batch_ends_the_next_one_too_as_in_kafka(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1), max_batch_bytes=300) as out:
        for _ in range(7):
            out.append([bytes(100)])
        out.freeze()
    with SnapshotReader(out.path) as snapshot:
        assert [batch.count for batch in snapshot.batches()] == [2, 1, 2, 1, 1]


def test_a_snapshot_is_invisible_until_it_is_frozen(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1)) as out:
        out.append([b"x"])
        (aside,) = tmp_path.iterdir()
        name = parse_snapshot(aside.name)
        assert name is not None
        assert name.id == SnapshotId(5, 1)
        assert aside.name.endswith(".checkpoint.part")
    assert list(tmp_path.iterdir()) == []


def test_a_frozen_snapshot_is_read_only(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1)) as out:
        out.freeze()
    assert not Path(out.path).stat().st_mode & stat.S_IWUSR
    assert Path(write_bootstrap(tmp_path, [])).stat().st_mode & stat.S_IWUSR


def test_records_that_cannot_be_together_are_refused(tmp_path: Path) -> None:
    with (
        SnapshotWriter(tmp_path, SnapshotId(5, 1), max_batch_bytes=300) as out,
        pytest.raises(NotRepresentable, match="fewer"),
    ):
        out.append([bytes(150), bytes(150)])
    with pytest.raises(NotRepresentable, match="voters"):
        SnapshotWriter(tmp_path, SnapshotId(5, 1), voters=VotersRecord())


def test_a_directory_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="not there"):
        SnapshotWriter(tmp_path / "no", SnapshotId(5, 1))


def test_every_cut_of_a_snapshot_is_refused(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1), max_batch_bytes=200) as out:
        for n in range(4):
            out.append([bytes([n]) * 50])
        out.freeze()
    data = Path(out.path).read_bytes()
    folder = tmp_path / "cut"
    folder.mkdir()
    cut = folder / Path(out.path).name
    for end in range(len(data)):
        cut.write_bytes(data[:end])
        with pytest.raises(Truncated), SnapshotReader(cut) as snapshot:
            list(snapshot.records())


def test_a_bit_flipped_anywhere_in_a_snapshot_is_refused(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1)) as out:
        out.append([b"value"])
        out.freeze()
    data = Path(out.path).read_bytes()
    folder = tmp_path / "flip"
    folder.mkdir()
    path = folder / Path(out.path).name
    for at in range(len(data)):
        hurt = bytearray(data)
        hurt[at] ^= 1 << at % 8
        path.write_bytes(hurt)
        with pytest.raises(BadData), SnapshotReader(path) as snapshot:
            list(snapshot.records())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no whole batch"),
        (one_batch(0), "header"),
        (
            build_control_batch(
                [SnapshotHeaderRecord()], base_offset=1, timestamp=0, partition_leader_epoch=0
            ),
            "begins at offset 1",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    path.write_bytes(data)
    with pytest.raises(BadData, match=said):
        SnapshotReader(path)


def test_a_snapshot_under_another_epoch_is_refused(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, SnapshotId(5, 1)) as out:
        out.freeze()
    other = Path(out.path).rename(tmp_path / "00000000000000000005-0000000002.checkpoint")
    with pytest.raises(Corrupt, match="epoch 1 in a snapshot of epoch 2"):
        SnapshotReader(other)


def test_batches_after_the_footer_are_refused(tmp_path: Path) -> None:
    path = Path(write_bootstrap(tmp_path, []))
    path.write_bytes(path.read_bytes() + one_batch(2))
    with pytest.raises(Corrupt, match="after the footer"), SnapshotReader(path) as snapshot:
        list(snapshot.records())
