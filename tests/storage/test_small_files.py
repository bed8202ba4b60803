"""Checkpoints, producer snapshots, meta.properties and the other small files."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.errors import Corrupt, NotKafka, TooLarge, Truncated, Unsupported
from kraftline.schema.uuids import Uuid
from kraftline.storage.checkpoints import (
    OFFSET_CHECKPOINTS,
    EpochStart,
    PartitionOffset,
    format_leader_epochs,
    format_offset_checkpoint,
    read_leader_epochs,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from kraftline.storage.clean_shutdown import (
    CleanShutdown,
    format_clean_shutdown,
    read_clean_shutdown,
)
from kraftline.storage.files import load
from kraftline.storage.meta_properties import (
    MetaProperties,
    format_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from kraftline.storage.partition_metadata import (
    PartitionMetadata,
    format_partition_metadata,
    read_partition_metadata,
)
from kraftline.storage.producer_snapshot import (
    ProducerEntry,
    format_producer_snapshot,
    read_producer_snapshot,
)
from kraftline.storage.quorum_state import (
    QuorumState,
    format_quorum_state,
    read_quorum_state,
)
from tests.fixture_files import name_of
from tests.storage.fixture_files import data_files, dump_lines

int16, int32, int64 = (st.integers(-(1 << b - 1), (1 << b - 1) - 1) for b in (16, 32, 64))
uuids = st.binary(min_size=16, max_size=16).map(Uuid)


# Producer snapshots


@pytest.mark.parametrize("path", data_files("[0-9]*.snapshot"), ids=name_of)
def test_producer_snapshot_is_what_kafka_says(path: Path) -> None:
    entries = read_producer_snapshot(path)
    for line, entry in zip(dump_lines(path) or [], entries, strict=True):
        said = dict(re.findall(r"(\w+): (\S+)", line))
        assert int(said["producerId"]) == entry.producer_id
        assert int(said["producerEpoch"]) == entry.producer_epoch
        assert int(said["coordinatorEpoch"]) == entry.coordinator_epoch
        assert int(said.get("lastTimestamp") or said["timestamp"]) == entry.timestamp
        open_since = re.sub(r"\D", "", said["currentTxnFirstOffset"])
        assert int(open_since or -1) == entry.current_txn_first_offset
        if "lastSequence" in said:
            assert int(said["lastSequence"]) == entry.last_sequence
            assert int(said["lastOffset"]) == entry.last_offset
            assert int(said["offsetDelta"]) == entry.offset_delta
    assert format_producer_snapshot(entries) == path.read_bytes()


@given(st.lists(st.builds(ProducerEntry, int64, int16, int32, int64, int32, int64, int32, int64)))
def test_producer_snapshot_round_trip(entries: list[ProducerEntry]) -> None:
    assert read_producer_snapshot(format_producer_snapshot(entries)) == tuple(entries)


def test_producer_snapshot_refuses_what_kafka_refuses() -> None:
    good = format_producer_snapshot([ProducerEntry(1, 0, 5, 9, 0, 1000, -1, -1)])
    with pytest.raises(Corrupt, match="checksum"):
        read_producer_snapshot(good[:-1] + b"\0")
    with pytest.raises(Unsupported):
        read_producer_snapshot(b"\0\x02" + good[2:])
    with pytest.raises(Truncated):
        read_producer_snapshot(b"\0")


# Checkpoints


@pytest.mark.parametrize("path", data_files(*OFFSET_CHECKPOINTS), ids=name_of)
def test_offset_checkpoints_of_kafka_round_trip(path: Path) -> None:
    entries = read_offset_checkpoint(path)
    assert not path.stat().st_size or format_offset_checkpoint(entries) == path.read_bytes()


@pytest.mark.parametrize("path", data_files("leader-epoch-checkpoint"), ids=name_of)
def test_leader_epochs_of_kafka_round_trip(path: Path) -> None:
    entries = read_leader_epochs(path)
    assert list(entries) == sorted(entries, key=lambda e: e.epoch)
    assert not path.stat().st_size or format_leader_epochs(entries) == path.read_bytes()


@given(st.lists(st.builds(PartitionOffset, st.text("ab.-_9", min_size=1), int32, int64)))
def test_offset_checkpoint_round_trip(entries: list[PartitionOffset]) -> None:
    assert read_offset_checkpoint(format_offset_checkpoint(entries)) == tuple(entries)


@given(st.lists(st.builds(EpochStart, int32, int64)))
def test_leader_epoch_round_trip(entries: list[EpochStart]) -> None:
    assert read_leader_epochs(format_leader_epochs(entries)) == tuple(entries)


@pytest.mark.parametrize("data", [b"", b"0", b"0\n", b"0\n0", b"0\n0\n", b"0\r\n0\r\n"])
def test_checkpoints_without_entries(data: bytes) -> None:
    assert read_offset_checkpoint(data) == ()


def test_fields_may_be_apart_by_any_white_space() -> None:
    expected = (PartitionOffset("a", 1, 2),)
    assert read_offset_checkpoint(b"0\n1\na \t1  2 ") == expected


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\n a 0 1\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 2147483648 1\n",
        b"0\n1\na 0 9223372036854775808\n",
        b"0\n1\na 0 " + b"9" * 5000,
        b"0\n1\n\n",
        b"0\n1\n\xff 0 1\n",
    ],
)
def test_checkpoints_that_lie_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_offset_checkpoint(data)


def test_another_version_of_a_checkpoint_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="version 1"):
        read_offset_checkpoint(b"1\n0\n")


def test_writing_replaces_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    for offset in (1, 2):
        write_offset_checkpoint(path, [PartitionOffset("a", 0, offset)])
        assert path.read_text() == f"0\n1\na 0 {offset}\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# meta.properties


@pytest.mark.parametrize("path", data_files("meta.properties"), ids=name_of)
def test_meta_properties_of_kafka_round_trip(path: Path) -> None:
    found = read_meta_properties(path)
    assert found.node_id is not None
    assert found.version == 0 or found.cluster_id
    date = path.read_text().splitlines()[1][1:]
    when = datetime.strptime(date.replace(" UTC ", " "), "%a %b %d %H:%M:%S %Y")
    written = format_meta_properties(found, when)
    # Ours may lack the name of the zone in the comment; all else is the same.
    assert written.splitlines()[2:] == path.read_bytes().splitlines()[2:]
    assert written.splitlines()[:1] == path.read_bytes().splitlines()[:1]


def test_meta_properties_of_a_zookeeper_broker() -> None:
    found = read_meta_properties(b"#\n#Fri\nbroker.id=3\nversion=0\ncluster.id=abc\n")
    assert found == MetaProperties(version=0, node_id=3, cluster_id="abc")
    assert read_meta_properties(b"broker.id=3\n").version == 0
    assert read_meta_properties(b"") == MetaProperties(version=0)


def test_unknown_keys_of_meta_properties_are_kept() -> None:
    found = read_meta_properties(b"version=1\nnode.id=1\ncluster.id=x\nfuture\\ key=a\\=b\n")
    assert found.unknown == {"future key": "a=b"}
    assert read_meta_properties(format_meta_properties(found)) == found


@given(
    st.builds(
        MetaProperties,
        version=st.just(1),
        cluster_id=st.text(max_size=30),
        node_id=st.integers(0, 2**31 - 1),
        directory_id=st.none() | uuids.filter(lambda u: int.from_bytes(u) >= 100),
        unknown=st.dictionaries(
            st.text(min_size=1).filter(
                lambda k: k not in ("version", "node.id", "directory.id", "cluster.id")
            ),
            st.text(),
        ),
    )
)
def test_meta_properties_round_trip(properties: MetaProperties) -> None:
    assert read_meta_properties(format_meta_properties(properties)) == properties


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"version=1\nnode.id=1\n", "no cluster.id"),
        (b"version=1\ncluster.id=1\n", "no node.id"),
        (b"version=1\ncluster.id=1\nnode.id=one\n", "node.id='one' is not a number"),
        (b"version=x\n", "version='x' is not a number"),
        (b"version=1\ncluster.id=1\nnode.id=-+5\n", "node.id='-+5' is not a number"),
        (b"version=1\ncluster.id=1\nnode.id=4294967296\n", "is not a number of 32 bits"),
        (b"version=1\ncluster.id=1\nnode.id=1\ndirectory.id=short\n", "directory.id"),
        (
            b"version=1\ncluster.id=1\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
            "reserved",
        ),
        (b"version=\\uZZZZ", "properties"),
    ],
)
def test_meta_properties_errors_say_what_is_wrong(data: bytes, said: str) -> None:
    with pytest.raises(Corrupt, match=re.escape(said)):
        read_meta_properties(data)


def test_a_later_version_of_meta_properties_is_unsupported(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_bytes(b"version=2\n")
    with pytest.raises(Unsupported, match=r"version 2 of meta\.properties") as caught:
        read_meta_properties(path)
    assert caught.value.file == str(path)
    write_meta_properties(path, MetaProperties(cluster_id="c", node_id=1))
    assert read_meta_properties(path).node_id == 1


# partition.metadata, .kafka_cleanshutdown, quorum-state


@pytest.mark.parametrize("path", data_files("partition.metadata"), ids=name_of)
def test_partition_metadata_of_kafka_round_trips(path: Path) -> None:
    assert format_partition_metadata(read_partition_metadata(path)) == path.read_bytes()


@given(uuids.filter(any))
def test_partition_metadata_round_trip(topic_id: Uuid) -> None:
    metadata = PartitionMetadata(topic_id)
    assert read_partition_metadata(format_partition_metadata(metadata)) == metadata


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAA",
        b"version: zero\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        b"version: 0\ntopic_id AAAAAAAAAAAAAAAAAAAAAQ x",
        b"\xff\xfe",
    ],
)
def test_bad_partition_metadata(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_partition_metadata(data)


@pytest.mark.parametrize("path", data_files(".kafka_cleanshutdown"), ids=name_of)
def test_clean_shutdown_markers_of_kafka_round_trip(path: Path) -> None:
    assert format_clean_shutdown(read_clean_shutdown(path)) == path.read_bytes()


def test_clean_shutdown_markers_old_and_new() -> None:
    assert read_clean_shutdown(b"") == CleanShutdown(None)
    assert read_clean_shutdown(b'{"version":0,"brokerEpoch":21,"x":1}') == CleanShutdown(21)
    with pytest.raises(Corrupt):
        read_clean_shutdown(b"{")


@pytest.mark.parametrize("path", data_files("quorum-state"), ids=name_of)
def test_quorum_states_of_kafka_round_trip(path: Path) -> None:
    assert format_quorum_state(read_quorum_state(path)) == path.read_bytes()


def test_quorum_state_of_a_static_quorum() -> None:
    line = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    state = read_quorum_state(line)
    assert state == QuorumState(leader_id=1, leader_epoch=2, current_voters=(1, 2))
    assert format_quorum_state(state) == line


@given(
    st.builds(
        QuorumState,
        leader_id=int32,
        leader_epoch=int32,
        voted_id=int32,
        voted_directory_id=uuids,
        data_version=st.just(1),
    )
    | st.builds(
        QuorumState,
        leader_id=int32,
        leader_epoch=int32,
        voted_id=int32,
        cluster_id=st.text(),
        applied_offset=int64,
        current_voters=st.none() | st.lists(int32).map(tuple),
    )
)
def test_quorum_state_round_trip(state: QuorumState) -> None:
    assert read_quorum_state(format_quorum_state(state)) == state


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"data_version":1}', b"\xff", b"null"])
def test_bad_quorum_states(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_quorum_state(data)


def test_a_later_quorum_state_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="data_version 2"):
        read_quorum_state(b'{"data_version":2}')


# Any small file


def test_a_missing_file_and_a_directory_are_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="no such file"):
        read_meta_properties(tmp_path / "meta.properties")
    with pytest.raises(NotKafka, match="is a directory"):
        read_meta_properties(tmp_path)


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge):
        read_meta_properties(path)
    with pytest.raises(TooLarge):
        load(path, 10)
