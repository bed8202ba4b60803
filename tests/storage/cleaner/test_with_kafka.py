"""A real broker goes on with logs that we cleaned, and we with those that it cleaned."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from kraftline.records import Record, batches
from kraftline.storage.checkpoints import CLEANER_OFFSETS, read_offset_checkpoint
from kraftline.storage.cleaner.cleaner import Cleaner, CleanerSettings
from kraftline.storage.log import Logs, PartitionLog, log_config
from kraftline.storage.log.partition_log import wall_clock
from tests.oracle.driver import Driver
from tests.oracle.dump import dump_text
from tests.oracle.kafka import HOST, KraftCluster
from tests.oracle.lines import Json
from tests.storage.cleaner.dirty_logs import CONFIG, Writer, deletes, transactions
from tests.storage.log.logs import Clock, assert_healthy, records_of, whole
from tests.storage.log.wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.soak]
SETTINGS = {**CONFIG, "min.cleanable.dirty.ratio": "0.1"}


def checkpoint(data: Path) -> int:
    path = data / CLEANER_OFFSETS
    found = {e.topic: e.offset for e in read_offset_checkpoint(path)} if path.exists() else {}
    return found.get("t", -1)


def opened(data: Path, clock: Clock) -> Logs:
    logs = Logs.open(data, lambda topic: log_config(SETTINGS), clock=clock)
    for log in logs:
        log.update_high_watermark(log.end_offset)
    return logs


def data_of(log: PartitionLog) -> list[Record]:
    """Records that are no markers."""
    return [record for record in records_of(log) if (record.key or b"").startswith(b"key")]


def fetched(wire: Wire, committed: int) -> tuple[bytes, list[tuple[int, int]]]:
    data, offset = b"", 0
    aborted: set[tuple[int, int]] = set()
    while True:
        answer = wire.fetch("t", 0, offset, committed=committed)
        assert answer.error_code == 0
        part = whole(bytes(answer.records or b""))
        if not part:
            return data, sorted(aborted)
        data += part
        for each in answer.aborted_transactions or ():
            aborted.add((each.producer_id, each.first_offset))
        offset = max(batch.next_offset for batch in batches(part))


def test_kafka_and_we_clean_in_turns(tmp_path: Path) -> None:
    with KraftCluster(
        tmp_path, dynamic=True, properties={"log.cleaner.backoff.ms": "100"}
    ) as kafka:
        data, clock = kafka.data(1), Clock(wall_clock())
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="t", configs=dict(SETTINGS))
        kafka.stop()

        logs = opened(data, clock)
        log = logs.get("t", 0)
        assert log is not None
        for chapter in (transactions, deletes):
            chapter(Writer(log, clock, 3))
        log.roll()
        cleaner = Cleaner((logs,), CleanerSettings(), clock=clock)
        assert cleaner.run_round(threading.Event())
        cleaned = log.end_offset
        seen = log.read_committed(0, 2**31)
        logs.close()
        assert checkpoint(data) == cleaned
        assert_healthy(data)
        paths = sorted((data / "t-0").glob("*.log"))
        bytes_of_logs = b"".join(path.read_bytes() for path in paths)
        for path, text in dump_text(paths).items():
            assert "isvalid: false" not in text, path
            count = sum(len(batch.records()) for batch in batches(path.read_bytes()))
            assert len(re.findall(r"^\| offset:", text, re.MULTILINE)) == count
        indexes = sorted((data / "t-0").glob("*index"))
        for path, text in dump_text([p for p in indexes if p.stat().st_size]).items():
            assert "ismatch" not in text, path

        kafka.start()
        wire = Wire((HOST, kafka.port(1)))
        while wire.fetch("t", 0, 0).error_code:
            time.sleep(0.1)
        assert fetched(wire, 0)[0] == bytes_of_logs
        first = seen.range.read()
        theirs, aborted = fetched(wire, 1)
        assert theirs.startswith(first)
        assert set(aborted) >= {(a.producer_id, a.first_offset) for a in seen.aborted}
        with Driver(kafka.bootstrap) as driver:
            for n in range(40):
                more: list[Json] = [{"k": f"key-{i}", "v": f"{n}" * 60} for i in range(20)]
                driver.produce("t", more)
            end = time.monotonic() + 90
            while checkpoint(data) <= cleaned:
                assert time.monotonic() < end
                time.sleep(0.1)
        wire.close()
        kafka.stop()
        log_text = (kafka.directory(1) / "server.log").read_text()
        assert not re.search(r"(orrupt|nvalid|uncleanable|Recovering).*\bt-0", log_text)

        kept = checkpoint(data)
        logs = opened(data, clock)
        log = logs.get("t", 0)
        assert log is not None
        after = data_of(log)
        below = [record.key for record in after if record.offset < kept]
        assert len(below) == len(set(below))
        cleaner = Cleaner((logs,), CleanerSettings(), clock=clock)
        assert cleaner.first_dirty_offset(log) == kept
        log.roll()
        assert cleaner.run_round(threading.Event())
        last = {record.key: record for record in after}
        assert {record.key: record for record in data_of(log)} == last
        logs.close()
        assert_healthy(data)
