"""One history out of what there is: gaps, damage, several copies, single files, growing logs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.inspect.history import History, Unanswerable, open_history
from kraftline.inspect.history.moments import AtOffset
from kraftline.metadata.image import MetadataImage
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.types import Message
from tests.inspect.metadata_logs import (
    START,
    VERSION,
    batch,
    cluster,
    make_log,
    make_segment,
    make_snapshot,
    topic,
    uuid,
)
from tests.metadata.replaying import state

FIXTURES = Path(__file__).parents[1] / "fixtures"
UPGRADED = FIXTURES / "upgraded_4_3" / "data" / "node-1"
METADATA = FIXTURES / "metadata_4_3" / "data"
FORMATTED = "00000000000000000000-0000000000.checkpoint"


def ranges(history: History) -> list[tuple[int, int]]:
    return [(leg.first_offset, leg.last_offset) for leg in history.legs]


def names(image: MetadataImage) -> list[str]:
    return sorted(image.topics.ids)


def topics(first: int, count: int) -> list[list[Message]]:
    """A batch for each topic: t5 at offset 5."""
    return [[topic(f"t{n}", uuid(n))] for n in range(first, first + count)]


def snapshot_of(*numbers: int) -> list[Message]:
    return [VERSION, *(topic(f"t{n}", uuid(n)) for n in numbers)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "__cluster_metadata-0"


def test_a_directory_whose_old_segments_are_gone(folder: Path) -> None:
    shutil.copytree(UPGRADED / "__cluster_metadata-0", folder)
    whole = open_history([str(UPGRADED)])
    (folder / "00000000000000000000.log").unlink()
    cut = open_history([str(folder)])
    # Snapshots at 78 and 168 lie before the log that is left, which begins at 173.
    assert ranges(cut) == [(77, 77), (167, 167), (239, 803)]
    for offset in (77, 167, 239, 500, 803):
        assert state(cut.image(AtOffset(offset))) == state(whole.image(AtOffset(offset)))
    with pytest.raises(Unanswerable, match="offset 200 cannot be answered for"):
        cut.image(AtOffset(200))
    assert all(trouble.harmless for trouble in cut.trouble)


def test_the_oldest_base_from_which_the_log_is_whole(folder: Path) -> None:
    make_segment(folder, topics(10, 10), start=10)
    make_snapshot(folder, 10, snapshot_of(1))
    make_snapshot(folder, 15, snapshot_of(2))
    history = open_history([str(folder)])
    assert ranges(history) == [(9, 19)]
    assert names(history.image()) == sorted(["t1", *(f"t{n}" for n in range(10, 20))])
    assert names(history.image(quick=True)) == sorted(["t2", *(f"t{n}" for n in range(15, 20))])
    assert names(history.image(AtOffset(12), quick=True)) == ["t1", "t10", "t11", "t12"]


def test_a_gap_bridged_by_a_snapshot(folder: Path) -> None:
    make_segment(folder, [[VERSION], *topics(1, 9)])
    make_segment(folder, topics(20, 10), start=20)
    make_snapshot(folder, 25, snapshot_of(3, 24))
    history = open_history([str(folder)])
    assert ranges(history) == [(0, 9), (24, 29)]
    assert names(history.image(AtOffset(24))) == ["t24", "t3"]
    assert names(history.image()) == ["t24", "t25", "t26", "t27", "t28", "t29", "t3"]
    with pytest.raises(Unanswerable, match=r"offsets 0 to 9 .* and offsets 24 to 29"):
        history.image(AtOffset(22))
    (said,) = history.trouble
    assert said.harmless
    assert "offsets 10 to 23 are missing" in said.reason
    assert history.committed_below == 25


def test_a_gap_that_nothing_bridges_is_said(folder: Path) -> None:
    make_segment(folder, [[VERSION], *topics(1, 9)])
    make_segment(folder, topics(20, 10), start=20)
    history = open_history([str(folder)])
    assert ranges(history) == [(0, 9)]
    assert len(names(history.image())) == 9
    (said,) = history.trouble
    assert not said.harmless
    assert "offsets 10 to 19 are missing, and no snapshot bridges that" in said.reason
    assert "offsets 20 to 29" in said.reason


def test_a_damaged_batch_is_a_gap(folder: Path) -> None:
    path = make_segment(folder, [[VERSION], *topics(1, 9)])
    data = bytearray(path.read_bytes())
    at = data.find(b"t5")
    data[at + 1] = ord("6")
    path.write_bytes(data)
    history = open_history([str(folder)])
    assert ranges(history) == [(0, 4)]
    assert history.trouble[0].reason == "the checksum of a batch is wrong"
    assert history.trouble[0].offset == 5
    make_snapshot(folder, 8, snapshot_of(7))
    assert ranges(open_history([str(folder)])) == [(0, 4), (7, 9)]


def test_another_nodes_copy_fills_in_for_damage(tmp_path: Path) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    make_segment(good, [[VERSION], *topics(1, 9)])
    path = make_segment(bad, [[VERSION], *topics(1, 9)])
    data = bytearray(path.read_bytes())
    data[data.find(b"t5")] = 0
    path.write_bytes(data)
    history = open_history([str(bad), str(good)])
    assert ranges(history) == [(0, 9)]
    assert len(names(history.image())) == 9


def test_where_copies_differ_the_higher_epoch_wins(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    common = batch([VERSION], 0) + batch([topic("both", uuid(1))], 1)
    for folder, rest in (
        (
            old,
            batch([topic("lost", uuid(2))], 2, epoch=1) + batch([topic("lost2", uuid(3))], 3),
        ),
        (
            new,
            batch([topic("kept", uuid(4))], 2, epoch=2, time=START + 1)
            + batch([topic("k2", uuid(5))], 3, epoch=2, time=START + 1),
        ),
    ):
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(common + rest)
    for order in ([old, new], [new, old]):
        history = open_history([str(path) for path in order])
        assert names(history.image()) == ["both", "k2", "kept"]
        (said,) = history.trouble
        assert "old differs from the other copies from offset 2 (leader epoch 1)" in said.reason


def test_the_copies_of_a_real_cluster_are_one_log() -> None:
    one, two = (str(METADATA / node) for node in ("node-1", "node-2"))
    both = open_history([two, one])
    assert ranges(both) == [(0, 298)]
    assert state(both.image()) == state(open_history([one]).image())
    assert both.committed_below == 231
    assert not both.trouble


def test_several_clusters_have_no_history_together(tmp_path: Path) -> None:
    shutil.copytree(METADATA / "node-2", tmp_path / "copy")
    meta = tmp_path / "copy" / "meta.properties"
    meta.write_text(meta.read_text().replace("kraftlineoracleclustrA", "anotherclusteraltogeth"))
    log = "__cluster_metadata-0"
    for inside in ("", log, f"{log}/00000000000000000154.log", "bootstrap.checkpoint"):
        with pytest.raises(NotKafka, match="different clusters"):
            open_history([str(METADATA / "node-1" / inside), str(tmp_path / "copy" / inside)])


def test_a_half_written_last_batch_is_left_out(folder: Path) -> None:
    path = make_segment(folder, [[VERSION], *topics(1, 9)])
    path.write_bytes(path.read_bytes()[:-5])
    history = open_history([str(folder)])
    assert ranges(history) == [(0, 8)]
    (said,) = history.trouble
    assert said.harmless
    assert "not all there" in said.reason


def test_a_log_that_grows_after_it_was_opened(folder: Path) -> None:
    path = make_segment(folder, [[VERSION], *topics(1, 4)])
    history = open_history([str(folder)])
    with path.open("ab") as file:
        file.write(batch([topic("t5", uuid(5))], 5))
    assert len(names(history.image())) == 4
    assert len(names(open_history([str(folder)]).image())) == 5


def test_a_segment_that_goes_while_it_is_read(folder: Path) -> None:
    path = make_segment(folder, [[VERSION], *topics(1, 4)])
    history = open_history([str(folder)])
    path.unlink()
    with pytest.raises(NotKafka, match="no such file"):
        history.image()


def test_a_broken_snapshot_is_passed_over(folder: Path) -> None:
    make_segment(folder, topics(10, 10), start=10)
    path = make_snapshot(folder, 10, snapshot_of(1))
    make_snapshot(folder, 15, snapshot_of(2))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-20])
    history = open_history([str(folder)])
    assert ranges(history) == [(14, 19)]
    assert "the snapshot is passed over" in history.trouble[0].reason


def test_a_single_snapshot_and_a_single_segment() -> None:
    folder = UPGRADED / "__cluster_metadata-0"
    whole = open_history([str(folder)])
    snapshot = open_history([str(folder / "00000000000000000240-0000000001.checkpoint")])
    assert ranges(snapshot) == [(239, 239)]
    assert state(snapshot.image()) == state(whole.image(AtOffset(239)))
    segment = open_history([str(folder / "00000000000000000173.log")])
    assert ranges(segment) == [(173, 370)]
    assert not segment.trouble[0].harmless
    assert "the log begins at offset 173" in segment.trouble[0].reason
    segment.image()
    both = [str(folder / "00000000000000000173.log"), str(folder / "00000000000000000000.log")]
    joined = open_history(both)
    assert ranges(joined) == [(0, 370)]
    assert state(joined.image()) == state(whole.image(AtOffset(370)))


def test_a_formatted_directory_that_never_ran(tmp_path: Path) -> None:
    source = FIXTURES / "aborted_4_3" / "data" / "node-1"
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(source / name, tmp_path / name)
    image = open_history([str(tmp_path)]).image()
    assert image.features.metadata_version is not None
    assert not image.cluster.brokers


def test_a_formatted_dynamic_quorum_has_the_features_it_will_begin_with(tmp_path: Path) -> None:
    source = METADATA / "node-1"
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    for name in ("meta.properties", "bootstrap.checkpoint", f"{log.name}/{FORMATTED}"):
        shutil.copy(source / name, tmp_path / name)
    history = open_history([str(tmp_path)])
    assert history.image().features.metadata_version is not None
    assert ranges(history) == [(-1, -1)]


def test_what_formatting_left_answers_for_no_offset_of_the_log(folder: Path) -> None:
    make_snapshot(folder, 0, [VERSION], epoch=0)
    make_segment(folder, topics(10, 10), start=10)
    make_snapshot(folder, 10, snapshot_of(1))
    history = open_history([str(folder)])
    assert ranges(history) == [(9, 19)]
    assert not history.trouble


def test_a_snapshot_under_another_name_answers_for_its_moment_only(tmp_path: Path) -> None:
    source = UPGRADED / "__cluster_metadata-0" / "00000000000000000240-0000000001.checkpoint"
    history = open_history([str(shutil.copy(source, tmp_path / "of-monday"))])
    assert state(history.image()) == state(open_history([str(source)]).image())
    assert history.range == "the one moment of a snapshot that names no offset"
    with pytest.raises(Unanswerable, match="names no offset"):
        history.image(AtOffset(0))
    with pytest.raises(NotKafka, match="has no place beside others"):
        open_history([str(UPGRADED), str(tmp_path / "of-monday")])


@pytest.mark.parametrize("name", ["orders-0", "meta.properties"])
def test_what_holds_no_metadata_is_refused(name: str) -> None:
    with pytest.raises(NotKafka):
        open_history([str(METADATA / "node-1" / name)])


def test_nothing_whole_in_it(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"\0" * 200)
    with pytest.raises(NotKafka, match="no whole batch"):
        open_history([str(folder)])


def test_a_record_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster())
    path = log / f"{0:020d}.log"
    odd = build_batch([Record(9, START, None, b"\x01\x7f\x00\x00")], partition_leader_epoch=1)
    path.write_bytes(path.read_bytes() + odd)
    history = open_history([str(log)])
    assert history.image().offset == 9
    (said,) = history.trouble
    assert said.offset == 9
    assert "cannot be read" in said.reason
