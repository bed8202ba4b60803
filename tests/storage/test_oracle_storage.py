"""Real Kafka reads what we wrote, and starts on it."""

from __future__ import annotations

import random
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from kraftline.records import Record, build_batch
from kraftline.records.framing import batches as split
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage import checkpoints, clean_shutdown, meta_properties, partition_metadata
from kraftline.storage.checkpoints import EpochStart, PartitionOffset
from kraftline.storage.follow import follow
from kraftline.storage.lock import owner
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.names import SnapshotId
from kraftline.storage.offset_index import read_offset_index
from kraftline.storage.partition_dir import read_partition_directory
from kraftline.storage.producer_snapshot import ProducerEntry, write_producer_snapshot
from kraftline.storage.segment import SegmentReader, TailKind
from kraftline.storage.segment_write import rebuild_indexes, write_segment
from kraftline.storage.snapshot_file import SnapshotWriter, write_bootstrap
from kraftline.storage.txn_index import AbortedTxn, write_txn_index
from tests.oracle.driver import Driver
from tests.oracle.dump import Decoder, dump_text
from tests.oracle.java import command_line
from tests.oracle.kafka import KraftCluster
from tests.storage.batches import some_batches

pytestmark = pytest.mark.oracle

DIRECTORY_ID = Uuid(b"a directory id..")
TOPIC_ID = Uuid(b"a topic id......")


def test_kafka_reads_every_file_that_we_write(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = folder / "00000000000000000007.log"
    made = some_batches(200, value_size=300, start=7)
    end = write_segment(log, made)
    write_txn_index(log.with_suffix(".txnindex"), [AbortedTxn(5, 8, 20, 21)])
    producers = folder / f"{end:020d}.snapshot"
    write_producer_snapshot(producers, [ProducerEntry(5, 1, 9, 20, 2, 1700000000000, 3, -1)])
    files = [log, log.with_suffix(".index"), log.with_suffix(".timeindex")]
    files += [log.with_suffix(".txnindex"), producers]
    said = dump_text(files)
    assert set(said) == set(files)
    for text in said.values():
        # It also compares an index with the log beside it, and complains in these words.
        for complaint in ("Exception", "Found", "out of order", "mismatch", "isvalid: false"):
            assert complaint not in text
    assert said[log].count("baseOffset:") == len(made)
    assert f"lastOffset: {end - 1} " in said[log]
    assert "producerId: 5 producerEpoch: 1 coordinatorEpoch: 3" in said[producers]
    aborted = "producerId: 5 firstOffset: 8 lastOffset: 20 lastStableOffset: 21"
    assert aborted in said[log.with_suffix(".txnindex")]


def test_kafka_reads_our_snapshots(tmp_path: Path) -> None:
    feature = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=20), 0)
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    with SnapshotWriter(folder, SnapshotId(9, 2), last_contained_log_timestamp=5) as out:
        out.append([feature])
        out.freeze()
    bootstrap = Path(write_bootstrap(tmp_path, [feature]))
    said = dump_text([Path(out.path), bootstrap], Decoder.METADATA)
    for text in said.values():
        assert "Exception" not in text
        assert "isvalid: false" not in text
        assert '"featureLevel":20' in text
        assert "SnapshotHeader" in text
        assert "SnapshotFooter" in text


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_our_snapshot_is_that_of_kafkas_own_writer(tmp_path: Path, kraft_version: int) -> None:
    rolls = random.Random(kraft_version)
    groups = [
        [rolls.randbytes(rolls.choice([1, 30, 63, 64, 200])) for _ in range(rolls.randint(1, 4))]
        for _ in range(60)
    ]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    source = Path(__file__).parent / "java" / "SnapshotBytes.java"
    args = [str(theirs), "1234", "7", str(kraft_version), "1500", "1700000000000"]
    lines = [",".join(b64encode(value).decode() for value in group) for group in groups]
    subprocess.run(
        command_line(str(source), args), input="\n".join(lines), text=True, check=True, timeout=120
    )
    with SnapshotWriter(
        ours,
        SnapshotId(1234, 7),
        last_contained_log_timestamp=1700000000000,
        kraft_version=kraft_version,
        clock=lambda: 1700000000000,
        max_batch_bytes=1500,
    ) as out:
        for group in groups:
            out.append(group)
        out.freeze()
    (expected,) = theirs.iterdir()
    assert Path(out.path).name == expected.name
    assert Path(out.path).read_bytes() == expected.read_bytes()


def write_log_directory(data: Path, cluster_id: str) -> int:
    """A log directory with one topic, as a node that was stopped cleanly leaves it."""
    data.mkdir(parents=True)
    meta_properties.write_meta_properties(
        data / meta_properties.NAME,
        meta_properties.MetaProperties(cluster_id=cluster_id, node_id=1, directory_id=DIRECTORY_ID),
    )
    records = [
        (FeatureLevelRecord(name="metadata.version", feature_level=25), 0),
        (TopicRecord(name="ours", topic_id=TOPIC_ID), 0),
        (
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(DIRECTORY_ID,),
            ),
            1,
        ),
    ]
    write_bootstrap(data, [encode_record(message, version) for message, version in records])
    folder = data / "ours-0"
    folder.mkdir()
    made = [
        build_batch(
            [Record(offset + n, 1700000000000 + offset, b"key", bytes(100)) for n in range(5)],
            partition_leader_epoch=0,
        )
        for offset in range(0, 1000, 5)
    ]
    end = write_segment(folder / f"{0:020d}.log", made[:100])
    assert end == 500
    end = write_segment(folder / f"{500:020d}.log", made[100:])
    partition_metadata.write_partition_metadata(
        folder / partition_metadata.NAME, partition_metadata.PartitionMetadata(TOPIC_ID)
    )
    checkpoints.write_leader_epochs(folder / checkpoints.LEADER_EPOCHS, [EpochStart(0, 0)])
    for name, offset in (
        (checkpoints.RECOVERY_POINTS, end),
        (checkpoints.HIGH_WATERMARKS, end),
        (checkpoints.LOG_START_OFFSETS, 0),
    ):
        checkpoints.write_offset_checkpoint(data / name, [PartitionOffset("ours", 0, offset)])
    clean_shutdown.write_clean_shutdown(data / clean_shutdown.NAME, clean_shutdown.CleanShutdown(5))
    return end


def test_a_broker_starts_on_a_directory_that_we_wrote(tmp_path: Path) -> None:
    kafka = KraftCluster(tmp_path)
    data = kafka.data(1)
    end = write_log_directory(data, kafka.cluster_id)
    before = rebuild_indexes(data / "ours-0" / f"{0:020d}.log")
    with kafka:
        kafka.start()
        assert owner(data) is not None
        live = read_log_directory(data)
        assert live.oddities == ()
        assert live.clean_shutdown is None
        with Driver(kafka.bootstrap) as driver:
            seen = driver.do(
                "consume",
                consumer="c",
                topics=["ours"],
                max=end,
                timeout=30_000,
                settings={"group.id": "g"},
            )
            assert seen["seen"] == end
            assert driver.produce("ours", [{"k": "a", "v": "b"}]) == [end]
        # The broker is still writing: its active index is preallocated, its log can be followed.
        assert read_offset_index(data / "ours-0" / f"{end:020d}.index").zero_tail > 0
        followed = [
            batch.base_offset
            for _, run in follow(data / "ours-0", end - 5, wait=lambda: False)
            for batch in split(run.buffer, run.start, run.end)
        ]
        assert followed == [end - 5, end]
        log = (kafka.directory(1) / "server.log").read_text()
        # It trusted our marker and indexes: nothing was recovered or rebuilt.
        assert "Rebuilding" not in log
        assert "Recovering unflushed segment" not in log
        assert "corrupt" not in log.lower()
    assert before == (
        (data / "ours-0" / f"{0:020d}.index").read_bytes(),
        (data / "ours-0" / f"{0:020d}.timeindex").read_bytes(),
    )
    stopped = read_log_directory(data)
    assert stopped.oddities == ()
    assert stopped.clean_shutdown is not None
    assert PartitionOffset("ours", 0, end + 1) in stopped.high_watermarks
    partition = read_partition_directory(data / "ours-0")
    assert partition.topic_id == TOPIC_ID
    # Our records are years old, so the first new one begins a segment.
    assert [segment.base_offset for segment in partition.segments] == [0, 500, end]
    with SegmentReader(partition.segments[-1].path) as reader:
        last = [batch for batch, _ in reader.batches()][-1]
        assert last.last_offset == end
        assert reader.tail is not None
        assert reader.tail.kind is TailKind.COMPLETE
