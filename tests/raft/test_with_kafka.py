"""Real Kafka and the embedded log take turns on one directory, and lose nothing of each other."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from pathlib import Path

import pytest

from kraftline.raft import EmbeddedLog, LogSettings
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.frame import decode_record, encode_record
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.names import SnapshotId
from kraftline.storage.quorum_state import read_quorum_state
from kraftline.storage.snapshot_file import SnapshotReader
from tests.oracle.driver import Driver
from tests.oracle.dump import Decoder, dump_text, parse_log
from tests.oracle.java import run as java
from tests.oracle.kafka import KraftCluster
from tests.oracle.shell import listed
from tests.raft.logs import QUIET, Keeper, assert_healthy, metadata_log, names, run

pytestmark = pytest.mark.oracle
quorums = pytest.mark.parametrize(
    "dynamic", [pytest.param(False, marks=pytest.mark.soak), True], ids=["static", "dynamic"]
)


def topic_of(name: str, data: Path) -> list[bytes]:
    """The records of a topic with one partition on node 1, and a config."""
    directory = read_meta_properties(data / "meta.properties").directory_id
    assert directory is not None
    topic_id = Uuid(name.encode().ljust(16, b"-")[:16])
    return [
        encode_record(TopicRecord(name=name, topic_id=topic_id), 0),
        encode_record(
            PartitionRecord(
                partition_id=0,
                topic_id=topic_id,
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(directory,),
            ),
            1,
        ),
        encode_record(
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="86401"), 0
        ),
    ]


async def add_topic(data: Path, name: str) -> EmbeddedLog:
    keeper = Keeper()
    async with await EmbeddedLog.open(data, node_id=1, settings=QUIET) as log:
        registration = log.register(keeper)
        appended = await log.write(topic_of(name, data))
        await registration.caught_up(appended.end_offset)
        assert keeper.values[-3:] == topic_of(name, data)
        assert keeper.leader == (1, log.epoch)
    assert_healthy(data)
    return log


def topics(data: Path) -> set[str]:
    async def listen() -> Keeper:
        keeper = Keeper()
        async with await EmbeddedLog.open(data, node_id=1, settings=QUIET) as log:
            await log.register(keeper).caught_up()
        return keeper

    found = [decode_record(value)[0] for value in run(listen()).values]
    return {record.name for record in found if isinstance(record, TopicRecord)}


def configured(kafka: KraftCluster) -> set[str]:
    """The topics that have our config, by Kafka's own tool."""
    args = ["--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "topics"]
    said = java("kafka.admin.ConfigCommand", args)
    found = re.findall(r"configs for topic (\S+) are:\s+retention\.ms=86401 ", said)
    return set(found)


def complaints(kafka: KraftCluster) -> list[str]:
    """What Kafka said against the metadata log when it was started last."""
    text = (kafka.directory(1) / "server.log").read_text()
    return [
        line
        for line in text.splitlines()
        if re.search(r"orrupt|invalid|[Tt]runcated|smaller than last written|orphaned", line)
        and "__cluster_metadata" in line
    ]


def kill_while_it_writes(kafka: KraftCluster, driver: Driver) -> list[str]:
    """Create topics until the node dies; the names of those that were acknowledged."""
    made: list[str] = []

    def create() -> None:
        with contextlib.suppress(Exception):
            for n in range(10_000):
                driver.do("createTopic", name=f"busy-{n}", partitions=5)
                made.append(f"busy-{n}")

    maker = threading.Thread(target=create, daemon=True)
    maker.start()
    time.sleep(1.5)
    kafka.kill(1)
    return list(made)


@pytest.mark.soak
@quorums
def test_kafka_and_we_take_turns(tmp_path: Path, dynamic: bool) -> None:
    with KraftCluster(tmp_path, dynamic=dynamic) as kafka:
        data = kafka.data(1)
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="theirs")
        kafka.stop()
        left_by_kafka = read_quorum_state(metadata_log(data) / "quorum-state")

        log = run(add_topic(data, "ours"))
        assert log.recovery.lines() == []
        assert log.epoch == left_by_kafka.leader_epoch + 1
        assert log.kraft_version == int(dynamic)
        ours = read_quorum_state(metadata_log(data) / "quorum-state")
        assert ours.data_version == left_by_kafka.data_version == int(dynamic)
        assert ours.current_voters == left_by_kafka.current_voters

        segment = metadata_log(data) / "00000000000000000000.log"
        dumped = parse_log(dump_text([segment], Decoder.METADATA)[segment])
        assert all(batch["isvalid"] for batch in dumped)
        assert '"name":"ours"' in dump_text([segment], Decoder.METADATA)[segment]
        assert {"theirs", "ours"} <= listed(segment, "/image/topics/byName")

        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            assert [p["leader"] for p in driver.partitions("ours")] == [1]
            assert driver.produce("ours", [{"k": "a", "v": "1"}]) == [0]
            assert configured(kafka) == {"ours"}
            driver.do("createTopic", name="theirs-again")
            made = kill_while_it_writes(kafka, driver)
        assert len(made) > 2

        log = run(add_topic(data, "ours-again"))
        assert all(cut.batches == 0 for cut in log.recovery.cuts)
        assert log.epoch == ours.leader_epoch + 2
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            for name in ("theirs", "ours", "theirs-again", "ours-again", *made):
                assert driver.partitions(name)[0]["leader"] == 1
            assert driver.produce("ours", [{"k": "a", "v": "2"}]) == [1]
        kafka.stop()
        assert complaints(kafka) == []
        assert topics(data) >= {"theirs", "ours", "theirs-again", "ours-again", *made}
        assert_healthy(data)


@quorums
def test_kafka_starts_on_what_only_we_have_started(tmp_path: Path, dynamic: bool) -> None:
    with KraftCluster(tmp_path, dynamic=dynamic) as kafka:
        data = kafka.data(1)
        assert not list(metadata_log(data).glob("*.log"))

        async def bootstrap() -> None:
            with SnapshotReader(data / "bootstrap.checkpoint") as seed:
                records = [record.value or b"" for record in seed.records()]
            async with await EmbeddedLog.open(data, node_id=1, settings=QUIET) as log:
                await log.write(records)
                # Once more, with a snapshot in the place of all that came before it.
                id = SnapshotId(log.high_watermark, log.epoch)
                await log.create_snapshot(id, [records], last_contained_log_timestamp=1)
                await log.write(topic_of("ours", data))

        run(bootstrap())
        assert_healthy(data)
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            assert [p["leader"] for p in driver.partitions("ours")] == [1]
            assert configured(kafka) == {"ours"}
        kafka.stop()
        assert complaints(kafka) == []
        assert topics(data) == {"ours"}
        assert_healthy(data)


@pytest.mark.soak
@quorums
def test_kafka_starts_on_a_log_that_begins_with_our_snapshot(tmp_path: Path, dynamic: bool) -> None:
    with KraftCluster(tmp_path, dynamic=dynamic) as kafka:
        data = kafka.data(1)

        async def shorten() -> None:
            with SnapshotReader(data / "bootstrap.checkpoint") as seed:
                records = [record.value or b"" for record in seed.records()]
            records += topic_of("kept", data)
            settings = LogSettings(segment_bytes=1000, clean_interval_ms=0)
            async with await EmbeddedLog.open(data, node_id=1, settings=settings) as log:
                for record in records:
                    await log.write([record])
                id = SnapshotId(log.high_watermark, log.epoch)
                await log.create_snapshot(id, [records], last_contained_log_timestamp=1)
                await log.write(topic_of("tail", data))
                assert await log.delete_before(id)

        run(shorten())
        assert "00000000000000000000.log" not in names(data)
        assert_healthy(data)
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            for name in ("kept", "tail"):
                assert [p["leader"] for p in driver.partitions(name)] == [1]
            assert configured(kafka) == {"kept", "tail"}
        kafka.stop()
        assert complaints(kafka) == []
        assert topics(data) == {"kept", "tail"}
        assert_healthy(data)
