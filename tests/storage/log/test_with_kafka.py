"""Real Kafka starts on what we wrote and serves it, and we on what it wrote, in turns."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kraftline.records import Record, batches
from kraftline.storage.log import Logs, PartitionLog, Stopped
from kraftline.storage.log.partition_log import wall_clock
from tests.oracle.driver import Driver
from tests.oracle.kafka import HOST, KraftCluster
from tests.oracle.lines import Json
from tests.storage.log.logs import assert_healthy, one, records_of, whole
from tests.storage.log.wire import Wire
from tests.storage.log.writer import CONFIG, PARTITIONS

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).parents[3]
# So that Kafka rolls and indexes as the writer does.
SETTINGS = {
    "internal.segment.bytes": str(CONFIG.segment_bytes),
    "index.interval.bytes": str(CONFIG.index_interval_bytes),
}


def write(data: Path, seed: int, count: int | None) -> dict[int, dict[int, int]]:
    """Let a writer append so many records, or kill it soon; by partition, the offsets that it
    acknowledged with their numbers."""
    module = [sys.executable, "-m", "tests.storage.log.writer", str(data), str(seed)]
    process = subprocess.Popen(
        [*module, "0" if count is None else str(count), "keep"], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    if count is None:
        time.sleep(0.7)
        process.kill()
    said += process.stdout.read()
    process.stdout.close()
    assert process.wait() == (-9 if count is None else 0)
    rows = [tuple(map(int, line.split())) for line in said.decode().split("\n")[:-1]]
    found: dict[int, dict[int, int]] = {partition: {} for partition in range(PARTITIONS)}
    for partition, offset, number in sorted(rows):
        found[partition][offset] = number
    return found


def fetched(wire: Wire, partition: int) -> bytes:
    """Every batch of a partition, as a consumer gets them."""
    data, offset = b"", 0
    while True:
        answer = wire.fetch("t", partition, offset)
        assert answer.error_code == 0
        part = whole(bytes(answer.records or b""))
        if not part:
            return data
        data += part
        offset = max(batch.next_offset for batch in batches(part))


def numbers(data: bytes) -> list[int]:
    """What the records hold, in their order; offsets without gaps."""
    records = [record for batch in batches(data) for record in batch.records()]
    assert [record.offset for record in records] == list(range(len(records)))
    return [int(record.value or b"") for record in records]


def complaints(kafka: KraftCluster) -> list[str]:
    """What Kafka said against our files."""
    text = (kafka.directory(1) / "server.log").read_text()
    words = r"orrupt|nvalid|Could not find|orphaned|Deleting segments|runcated|rror|non-monotonic"
    return [
        line for line in text.splitlines() if re.search(words, line) and re.search(r"\bt-\d", line)
    ]


def ready(kafka: KraftCluster) -> Wire:
    """A connection, once every partition has its leader."""
    wire = Wire((HOST, kafka.port(1)))
    for partition in range(PARTITIONS):
        for _ in range(100):
            if wire.fetch("t", partition, 0).error_code == 0:
                break
            time.sleep(0.1)
    return wire


@pytest.mark.soak
def test_kafka_and_we_take_turns(tmp_path: Path) -> None:
    with KraftCluster(tmp_path, dynamic=True) as kafka:
        data = kafka.data(1)
        kafka.start()
        expected: dict[int, list[int]] = {}
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="t", partitions=PARTITIONS, configs=dict(SETTINGS))
            for partition in range(PARTITIONS):
                theirs: list[Json] = [{"k": "k", "v": str(n)} for n in range(20)]
                driver.produce("t", theirs, partition=partition)
                expected[partition] = list(range(20))
        kafka.stop()

        for partition, made in write(data, 1, 3000).items():
            assert list(made) == list(range(20, 20 + len(made)))
            expected[partition] += made.values()
        assert_healthy(data)
        ours = {p: (data / f"t-{p}").glob("*.log") for p in range(PARTITIONS)}
        bytes_of = {p: b"".join(path.read_bytes() for path in sorted(ours[p])) for p in ours}

        kafka.start()
        wire = ready(kafka)
        for partition in range(PARTITIONS):
            assert fetched(wire, partition) == bytes_of[partition]
            assert numbers(bytes_of[partition]) == expected[partition]
        log = (kafka.directory(1) / "server.log").read_text()
        assert not re.search(r"Recovering unflushed segment.*\bt-\d", log)
        with Driver(kafka.bootstrap) as driver:
            driver.produce("t", [{"k": "k", "v": "20"}], partition=0)
            expected[0].append(20)
            kafka.kill(1)
        wire.close()

        # Killed Kafka, then killed ourselves: and Kafka recovers what both have left.
        acknowledged = write(data, 2, None)
        kafka.start()
        wire = ready(kafka)
        for partition in range(PARTITIONS):
            found = numbers(fetched(wire, partition))
            assert found[: len(expected[partition])] == expected[partition]
            there = {offset: found[offset] for offset in acknowledged[partition]}
            assert there == acknowledged[partition]
        wire.close()
        kafka.stop()
        assert [line for line in complaints(kafka) if "Truncated" not in line] == []
        assert_healthy(data)


def test_offsets_by_time_are_kafkas(tmp_path: Path) -> None:
    """And where segments begin and their indexes, for the same appends."""
    with KraftCluster(tmp_path, dynamic=True) as kafka:
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="t", partitions=PARTITIONS, configs=dict(SETTINGS))
        wire = ready(kafka)
        ours = PartitionLog.open(tmp_path / "ours" / "t-0", CONFIG)
        now = wall_clock()
        for n in range(300):
            batch = one(b"x" * (n * 97 % 900), count=1 + n % 3, timestamp=now + n * 7919 % 5000)
            assert wire.produce("t", bytes(batch)).base_offset == ours.append(batch, 0).first_offset
        for timestamp in range(now - 10, now + 5010, 37):
            said = wire.list_offset("t", 0, timestamp)
            found = ours.offset_at_time(timestamp)
            if found is None:
                assert said.offset == -1
            else:
                theirs = (said.offset, said.timestamp, said.leader_epoch)
                assert theirs == (found.offset, found.timestamp, found.leader_epoch)
        newest = ours.newest_record()
        said = wire.list_offset("t", 0, -3)
        assert newest is not None
        assert (said.offset, said.timestamp) == (newest.offset, newest.timestamp)
        assert wire.list_offset("t", 0, -1).offset == ours.latest().offset
        assert wire.list_offset("t", 0, -2).offset == ours.earliest().offset
        for offset in range(0, ours.end_offset, 41):
            for most in (1, 3000):
                given = wire.fetch("t", 0, offset, most=most).records
                assert bytes(given or b"") == ours.read(offset, most).read()
        wire.close()
        kafka.stop()
        ours.close()
        theirs_dir = kafka.data(1) / "t-0"
        for path in sorted((tmp_path / "ours" / "t-0").iterdir()):
            assert path.read_bytes() == (theirs_dir / path.name).read_bytes(), path.name
        there = {path.name for path in theirs_dir.iterdir()} - {"partition.metadata"}
        assert there == {path.name for path in (tmp_path / "ours" / "t-0").iterdir()}


def test_transactions_of_kafka_are_seen_as_kafka_sees_them(tmp_path: Path) -> None:
    with KraftCluster(tmp_path, dynamic=True) as kafka:
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="t", partitions=PARTITIONS, configs=dict(SETTINGS))
            settings = {"transactional.id": "x", "linger.ms": "20"}
            for n in range(12):
                driver.do("begin", producer="x", settings=dict(settings))
                records: list[Json] = [{"k": "k", "v": "v" * 400} for _ in range(5)]
                driver.produce("t", records, producer="x")
                driver.do("abort" if n % 3 == 1 else "commit", producer="x")
            driver.do("begin", producer="x")
            driver.produce("t", [{"k": "k", "v": "open"}], producer="x")
        wire = ready(kafka)
        said = []
        for offset in range(0, 70, 7):
            answer = wire.fetch("t", 0, offset, committed=1)
            aborted = [(a.producer_id, a.first_offset) for a in answer.aborted_transactions or ()]
            said.append((bytes(answer.records or b""), sorted(aborted)))
        stable = answer.last_stable_offset
        wire.close()
        kafka.kill(1)
        log = PartitionLog.open(kafka.data(1) / "t-0", CONFIG, stopped=Stopped(clean=False))
        log.update_high_watermark(log.end_offset)
        assert log.last_stable_offset == stable < log.end_offset
        for offset, theirs in zip(range(0, 70, 7), said, strict=True):
            read = log.read_committed(offset, 10_000_000)
            found = [(each.producer_id, each.first_offset) for each in read.aborted]
            assert (read.range.read(), sorted(found)) == theirs
        log.close()


def test_records_of_kafka_are_read_as_they_were_sent(tmp_path: Path) -> None:
    with KraftCluster(tmp_path, dynamic=True) as kafka:
        kafka.start()
        sent: list[Json] = [{"k": f"k{n}", "v": f"v{n}" * 50} for n in range(500)]
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="t", configs=dict(SETTINGS))
            for at in range(0, 500, 25):
                driver.produce("t", sent[at : at + 25])
        kafka.kill(1)
        logs = Logs.open(kafka.data(1), lambda topic: CONFIG)
        log = logs.get("t", 0)
        assert log is not None
        found: list[Record] = records_of(log)
        assert [(r.offset, r.value) for r in found] == [
            (n, f"v{n}".encode() * 50) for n in range(500)
        ]
        logs.close()
        kafka.start()
        kafka.stop()
        assert complaints(kafka) == []
