"""The metadata audit: snapshots against their log, and nodes against each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from kraftline.inspect.snapshots import read_state, target_of, write_state
from kraftline.inspect.verify.replay_reading import read_batches, snapshot_image
from kraftline.records import Record, batches, build_batch
from kraftline.records.batch import Batch
from kraftline.schema.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from kraftline.schema.metadata.frame import decode_record, encode_record
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.segment import SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter
from tests.inspect.damage import (
    EPOCH,
    FIXTURES,
    LOG,
    METADATA,
    change_value,
    codes,
    copy,
    data_batches,
    drop_indexes,
    findings,
    flip,
    notes,
    patch,
)
from tests.inspect.metadata_logs import VERSION, cluster, make_segment, make_snapshot

CLUSTERS = ["metadata_3_3", "metadata_4_3", "upgraded_4_3"]
THIRD = "00000000000000000188-0000000001.checkpoint"
Records = list[tuple[Message, int]]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return copy(METADATA / "__cluster_metadata-0", tmp_path)


def rewrite(path: Path, change: Callable[[Records], Records]) -> None:
    """Write a snapshot again with other records, all else being the same."""
    with SnapshotReader(path) as reader:
        assert reader.id is not None
        records = [decode_record(record.value or b"") for record in reader.records()]
        path.unlink()
        with SnapshotWriter(
            path.parent,
            reader.id,
            last_contained_log_timestamp=reader.header.last_contained_log_timestamp,
            kraft_version=reader.kraft_version,
            voters=reader.voters,
        ) as writer:
            writer.append([encode_record(*record) for record in change(records)])
            writer.freeze()
    path.chmod(0o644)


def last_log(partition: Path) -> Path:
    return sorted(partition.glob("*.log"))[-1]


def append_records(log: Path, *groups: Sequence[Message]) -> int:
    """Batches behind the log's last one; the offset behind them."""
    data = log.read_bytes()
    last = list(batches(data))[-1]
    offset = last.last_offset + 1
    for group in groups:
        data += build_batch(
            [
                Record(offset + n, last.max_timestamp, None, encode_record(message, 0))
                for n, message in enumerate(group)
            ],
            base_offset=offset,
            partition_leader_epoch=last.partition_leader_epoch,
        )
        offset += len(group)
    log.write_bytes(data)
    return offset


def snapshot_here(partition: Path, extra: Sequence[Message]) -> Path:
    """A snapshot at the log's end with what the log comes to, and something more."""
    state = read_state([str(partition)])
    path = Path(write_state(state, target_of(str(partition), state)).path)
    rewrite(path, lambda records: [*records, *((message, 0) for message in extra)])
    return path


@pytest.mark.parametrize("fixture", CLUSTERS)
def test_nodes_of_a_healthy_cluster_agree(fixture: str) -> None:
    nodes = sorted((FIXTURES / fixture / "data").glob("node-*"))
    assert len(nodes) > 1
    assert findings(*nodes) == []
    assert not any("divergence" in note.code for note in notes(*nodes))


def test_every_snapshot_of_the_fixtures_is_really_compared() -> None:
    for directory in sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0")):
        told = [note for note in notes(directory) if note.code == "snapshot-replay"]
        assert not any("far enough" in note.problem for note in told)


def test_a_record_that_is_missing_from_a_snapshot_is_named(partition: Path) -> None:
    def drop(records: Records) -> Records:
        return [
            pair
            for pair in records
            if not (isinstance(pair[0], PartitionRecord) and pair[0].partition_id == 1)
        ]

    rewrite(partition / THIRD, drop)
    (finding,) = findings(partition)
    assert finding.code == "snapshot-replay"
    assert finding.file.endswith(THIRD)
    assert finding.offset == 188
    assert "missing from the snapshot: partition " in finding.problem
    assert "orders-1 (Partition)" in finding.problem
    assert "cause is unknown" in finding.problem
    assert finding.meaning


def test_a_record_that_differs_is_named_with_its_fields(partition: Path) -> None:
    def change(records: Records) -> Records:
        return [
            (msgspec.structs.replace(message, isr=(1,)), version)
            if isinstance(message, PartitionRecord) and len(message.isr) == 3
            else (message, version)
            for message, version in records
        ]

    rewrite(partition / THIRD, change)
    (finding,) = findings(partition)
    assert "different: partition orders-" in finding.problem
    assert "isr [1] instead of [" in finding.problem


def test_values_that_differ_are_told_but_for_secrets(partition: Path) -> None:
    settings = {"log.retention.ms": "60000", "listener.name.plaintext.ssl.key.password": "hush"}
    append_records(
        last_log(partition),
        [ConfigRecord(resource_type=4, name=n, value=v) for n, v in settings.items()],
        [ClientQuotaRecord(entity=(), key="request_percentage", value=25.0)],
    )

    def change(records: Records) -> Records:
        others = {"60000": "70000", "hush": "hush-hush", 25.0: 26.0}
        return [
            (msgspec.structs.replace(message, value=others[message.value]), version)
            if isinstance(message, ConfigRecord | ClientQuotaRecord) and message.value in others
            else (message, version)
            for message, version in records
        ]

    rewrite(snapshot_here(partition, []), change)
    (finding,) = findings(partition)
    assert "log.retention.ms of broker (all) (Config): value 70000 instead of 60000" in (
        finding.problem
    )
    assert "(ClientQuota): value 26.0 instead of 25.0" in finding.problem
    assert "ssl.key.password of broker (all) (Config): value" in finding.problem
    assert "hush" not in finding.problem


def test_configs_of_a_removed_topic_are_kafkas_fault(partition: Path) -> None:
    topic = Uuid(b"passing-topic---")
    config = ConfigRecord(resource_type=2, resource_name="tmp", name="retention.ms", value="1")
    append_records(
        last_log(partition),
        [TopicRecord(name="tmp", topic_id=topic), config],
        [RemoveTopicRecord(topic_id=topic)],
    )
    drop_indexes(partition)
    assert codes(partition) == []
    path = snapshot_here(partition, [config])
    (finding,) = findings(partition)
    assert finding.file == str(path)
    assert "only in the snapshot: retention.ms of topic tmp (Config)" in finding.problem
    assert "topic tmp was removed at offset 301" in finding.problem
    assert "created and removed in one publication" in finding.problem


def test_records_of_an_aborted_transaction_are_kafkas_fault(partition: Path) -> None:
    topic = TopicRecord(name="never", topic_id=Uuid(b"aborted-topic---"))
    append_records(
        last_log(partition),
        [BeginTransactionRecord(name="half"), topic],
        [AbortTransactionRecord(reason="Controller failover")],
    )
    drop_indexes(partition)
    snapshot_here(partition, [topic])
    (finding,) = findings(partition)
    assert "only in the snapshot: topic never (Topic)" in finding.problem
    assert "began at offset 299 and was aborted at 301" in finding.problem


def test_a_user_who_replaced_the_last_one_is_lost_by_kafka(partition: Path) -> None:
    append_records(
        last_log(partition),
        [
            RemoveUserScramCredentialRecord(name="old", mechanism=1),
            UserScramCredentialRecord(name="new", mechanism=1, iterations=4096),
        ],
    )
    drop_indexes(partition)
    rewrite(
        snapshot_here(partition, []),
        lambda records: [
            (message, version)
            for message, version in records
            if not (isinstance(message, UserScramCredentialRecord) and message.name == "new")
        ],
    )
    (finding,) = findings(partition)
    assert "missing from the snapshot: the SCRAM credential of new" in finding.problem
    assert "new came at offset 300, and old was removed at 299: Kafka may lose" in finding.problem
    assert "SCRAM-SHA-256" in finding.problem


def test_several_causes_are_several_findings(partition: Path) -> None:
    topic = TopicRecord(name="never", topic_id=Uuid(b"aborted-topic---"))
    other = TopicRecord(name="nobody-knows", topic_id=Uuid(b"unknown-topic---"))
    append_records(
        last_log(partition),
        [BeginTransactionRecord(name="half"), topic],
        [AbortTransactionRecord()],
    )
    drop_indexes(partition)
    snapshot_here(partition, [topic, other])
    first, second = findings(partition)
    assert "aborted at 301" in first.problem
    assert "nobody-knows" in second.problem
    assert "unknown" in second.problem


def test_a_log_that_does_not_reach_back_is_a_note(tmp_path: Path) -> None:
    source = FIXTURES / "metadata_3_9" / "data" / "node-1" / "__cluster_metadata-0"
    partition = copy(source, tmp_path)
    for path in partition.glob(f"{0:020d}.*"):
        path.unlink()
    assert codes(partition) == []
    told = [note for note in notes(partition) if note.code == "snapshot-replay"]
    assert len(told) == 1
    assert "snapshots that end at 111, 218" in told[0].problem
    # Those behind the base are compared all the same.
    rewrite(partition / "00000000000000000317-0000000001.checkpoint", lambda r: r[:-1])
    assert codes(partition) == ["snapshot-replay"]


@pytest.mark.parametrize("snapshots", [True, False], ids=["behind the last", "without any"])
def test_records_that_do_not_fit_are_noted_without_a_snapshot_of_them(
    partition: Path, snapshots: bool
) -> None:
    if not snapshots:
        for path in partition.glob("*.checkpoint"):
            path.unlink()
    nobodys = RemoveTopicRecord(topic_id=Uuid(b"nobody's topic!!"))
    end = append_records(last_log(partition), [EndTransactionRecord()], [nobodys])
    (told,) = [note for note in notes(partition) if note.code == "snapshot-replay"]
    assert told.problem.startswith("records that do not fit what came before them (2)")
    assert f"the first: offset {end - 2}: " in told.problem


def test_a_log_that_ends_inside_a_transaction_is_noted(partition: Path) -> None:
    begin = BeginTransactionRecord(name="more topics")
    append_records(
        last_log(partition), [begin, TopicRecord(name="more", topic_id=Uuid(b"one topic more.."))]
    )
    (told,) = [note for note in notes(partition) if note.code == "snapshot-replay"]
    assert "ends inside the metadata transaction 'more topics' that began at offset 299" in (
        told.problem
    )


def test_what_formatting_left_is_not_held_against_the_log(tmp_path: Path) -> None:
    """From Kafka 4.4 on it has the first features in it, which the log then has as well."""
    log = tmp_path / "__cluster_metadata-0"
    make_snapshot(log, 0, [VERSION], epoch=0)
    assert [note.code for note in notes(log)] == []
    make_segment(log, cluster())
    make_snapshot(log, 9, [record for batch in cluster() for record in batch])
    assert codes(log) == []
    assert "snapshot-replay" not in [note.code for note in notes(log)]


def test_damage_in_the_log_is_no_difference(partition: Path) -> None:
    flip(partition / LOG, data_batches(partition / LOG)[5] + 70)
    assert set(codes(partition)) == {"batch-crc"}


@pytest.mark.parametrize("emptied", [False, True], ids=["gone", "empty"])
def test_a_segment_that_is_gone_from_the_middle_is_found(partition: Path, emptied: bool) -> None:
    """Kafka 4.3.1 starts on it without a word."""
    middle = partition / "00000000000000000154.log"
    middle.write_bytes(b"") if emptied else middle.unlink()
    (finding,) = [each for each in findings(partition) if each.code == "batch-offset"]
    assert finding.file.endswith("00000000000000000289.log")
    assert finding.offset == 154
    assert "begins at offset 289 where 154 is due: 135 offsets are missing" in finding.problem


def test_segments_that_broke_off_are_told_once(partition: Path) -> None:
    path = partition / LOG
    path.write_bytes(path.read_bytes()[:-20])
    assert codes(partition).count("batch-offset") == 0
    assert "tail-partial" in codes(partition)


def test_another_snapshot_under_the_name_of_one_is_compared(tmp_path: Path) -> None:
    """Kafka 4.3.1 loads it: it does not hold the epoch in the name against the batches."""
    partition = copy(FIXTURES / "upgraded_4_3/data/node-1/__cluster_metadata-0", tmp_path)
    older = partition / "00000000000000000627-0000000001.checkpoint"
    newer = partition / "00000000000000000732-0000000002.checkpoint"
    newer.write_bytes(older.read_bytes())
    found = {each.code: each for each in findings(partition)}
    # kraft.version was raised between the two.
    assert found.keys() == {"snapshot-epoch", "snapshot-quorum", "snapshot-replay"}
    assert found["snapshot-replay"].file.endswith(newer.name)
    assert "it is not what the log up to offset 731 comes to" in found["snapshot-replay"].problem
    assert "likely a snapshot of another moment" in found["snapshot-replay"].problem


def test_a_flipped_bit_in_a_snapshot_is_told_with_what_it_does_to_a_node(partition: Path) -> None:
    """Kafka 4.3.1 ends with CorruptRecordException, after clean stops as well."""
    path = partition / THIRD
    flip(path, path.stat().st_size // 2)
    (finding,) = findings(partition)
    assert finding.code == "batch-crc"
    assert "will not start with this snapshot" in finding.meaning


def test_a_snapshot_that_is_cut_is_not_compared(partition: Path) -> None:
    path = partition / THIRD
    path.write_bytes(path.read_bytes()[:-20])
    assert "snapshot-replay" not in codes(partition)


def test_a_single_file_is_not_audited(partition: Path) -> None:
    rewrite(partition / THIRD, lambda records: records[:-1])
    assert codes(partition / THIRD) == []


def _all_batches(log: Path) -> list[Batch]:
    with SegmentReader(log) as reader:
        return [batch for batch, _ in reader.batches()]


def test_reading_a_log_gives_every_record() -> None:
    for directory in sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0")):
        logs = sorted(directory.glob("*.log"))
        found = list(read_batches([str(log) for log in logs]))
        offsets = [batch.base_offset + n for batch in found for n in range(len(batch.records))]
        expected = [
            record.offset
            for log in logs
            for batch in _all_batches(log)
            if not batch.is_control
            for record in batch.records()
        ]
        assert offsets == expected


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[Path, Path]:
    """Two nodes of one cluster, with the same log."""
    first = copy(METADATA, tmp_path / "1")
    second = tmp_path / "2" / "node-2"
    shutil.copytree(first, second)
    for node in (first, second):
        drop_indexes(node / "__cluster_metadata-0")
    return first, second


def test_batches_that_differ_in_one_epoch_are_a_divergence(nodes: tuple[Path, Path]) -> None:
    log = nodes[1] / "__cluster_metadata-0" / LOG
    position = data_batches(log)[-3]

    def other_name(value: bytes) -> bytes:
        assert decode_record(value)
        return encode_record(TopicRecord(name="x", topic_id=Uuid(b"x" * 16)), 0)

    change_value(log, position, other_name)
    found = [each for each in findings(*nodes) if each.code == "log-divergence"]
    (finding,) = found
    assert finding.file == str(log)
    assert finding.position == position
    assert "one leader never writes two batches at one offset" in finding.problem


def test_an_uncommitted_tail_of_an_old_leader_is_a_note(nodes: tuple[Path, Path]) -> None:
    logs = [last_log(node / "__cluster_metadata-0") for node in nodes]
    append_records(logs[0], [TopicRecord(name="won", topic_id=Uuid(b"w" * 16))])
    append_records(logs[1], [TopicRecord(name="lost", topic_id=Uuid(b"l" * 16))])
    last = data_batches(logs[0])[-1]
    patch(logs[0], last + EPOCH, (3).to_bytes(4, "big"))
    assert "log-divergence" not in codes(*nodes)
    (note,) = [each for each in notes(*nodes) if each.code == "log-divergence"]
    assert "cuts these off when it next follows a leader" in note.problem


def test_a_tail_that_was_committed_is_a_divergence(nodes: tuple[Path, Path]) -> None:
    logs = [last_log(node / "__cluster_metadata-0") for node in nodes]
    append_records(logs[0], [TopicRecord(name="won", topic_id=Uuid(b"w" * 16))])
    append_records(logs[1], [TopicRecord(name="lost", topic_id=Uuid(b"l" * 16))])
    patch(logs[0], data_batches(logs[0])[-1] + EPOCH, (3).to_bytes(4, "big"))
    snapshot_here(nodes[1] / "__cluster_metadata-0", [])
    (finding,) = [each for each in findings(*nodes) if each.code == "log-divergence"]
    assert "counted as committed there" in finding.problem


def test_a_shorter_log_is_no_divergence(nodes: tuple[Path, Path]) -> None:
    log = last_log(nodes[1] / "__cluster_metadata-0")
    with log.open("r+b") as file:
        file.truncate(data_batches(log)[-1])
    assert codes(*nodes) == []


def test_snapshots_of_one_name_have_the_same_records(nodes: tuple[Path, Path]) -> None:
    rewrite(nodes[1] / "__cluster_metadata-0" / THIRD, lambda records: records[:-1])
    assert sorted(codes(*nodes)) == ["snapshot-divergence", "snapshot-replay"]
    (finding,) = [each for each in findings(*nodes) if each.code == "snapshot-divergence"]
    assert str(nodes[0]) in finding.problem
    assert "missing from this one" in finding.problem


def test_a_snapshot_that_its_own_log_cannot_tell_of_is_held_against_another_nodes(
    nodes: tuple[Path, Path],
) -> None:
    """As seen on Kafka 4.3.1: a node was down while a topic was created and deleted, its snapshots
    have a config of it ever since, and its log was trimmed."""
    partition = nodes[1] / "__cluster_metadata-0"
    for path in partition.iterdir():
        if path.name.startswith("0") and int(path.name[:20]) < 154:
            path.unlink()
    left = ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="1")
    rewrite(partition / THIRD, lambda records: [*records, (left, 0)])
    assert codes(nodes[1]) == []
    found = {each.code: each for each in findings(*nodes)}
    assert found.keys() == {"snapshot-replay", "snapshot-divergence"}
    assert found["snapshot-replay"].file == str(partition / THIRD)
    assert "only in the snapshot: retention.ms of topic gone" in found["snapshot-replay"].problem


def test_the_order_of_records_in_a_snapshot_does_not_matter(nodes: tuple[Path, Path]) -> None:
    def configs_last(records: Records) -> Records:
        return sorted(records, key=lambda pair: isinstance(pair[0], ConfigRecord))

    rewrite(nodes[1] / "__cluster_metadata-0" / THIRD, configs_last)
    assert codes(*nodes) == []


def test_nodes_formatted_apart_under_one_id_are_found_out(tmp_path: Path) -> None:
    one = copy(METADATA, tmp_path / "1")
    two = copy(FIXTURES / "aborted_4_3" / "data" / "node-1", tmp_path / "2")
    properties = two / "meta.properties"
    ids = [read_meta_properties(node / "meta.properties").cluster_id for node in (one, two)]
    properties.write_text(properties.read_text().replace(str(ids[1]), str(ids[0])))
    (finding,) = findings(one, two)
    assert finding.code == "log-divergence"
    assert "formatted as a cluster of its own" in finding.problem
    for node in (one, two):
        (node / "meta.properties").unlink()
    assert codes(one / "__cluster_metadata-0", two / "__cluster_metadata-0") == []


def test_a_copy_that_does_not_say_whose_it_is_is_compared_too(nodes: tuple[Path, Path]) -> None:
    rewrite(nodes[1] / "__cluster_metadata-0" / THIRD, lambda records: records[:-1])
    (nodes[1] / "meta.properties").unlink()
    assert "snapshot-divergence" in codes(nodes[0], nodes[1] / "__cluster_metadata-0")


def test_one_directory_given_twice_is_one_copy() -> None:
    assert codes(METADATA, METADATA / "__cluster_metadata-0") == []


def test_a_snapshot_is_read_as_kafka_would(partition: Path) -> None:
    image = snapshot_image(str(partition / THIRD))
    assert "orders" in image.topics.ids
