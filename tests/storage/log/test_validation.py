"""What a log refuses, and with which words: Kafka's, but where Kafka stumbles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftline.records import batches
from kraftline.schema.api.produce import PartitionProduceResponse
from kraftline.storage.log import AppendRefused, ErrorCode, PartitionLog, log_config
from kraftline.storage.log.partition_log import wall_clock
from tests.oracle.driver import Driver
from tests.oracle.kafka import HOST, KraftCluster
from tests.storage.log.logs import NOW, Clock, one
from tests.storage.log.odd_batches import CASES, NOT_THE_LOGS, REFUSED_HERE, Case
from tests.storage.log.wire import Wire

OURS = [case for case in CASES if case.name not in NOT_THE_LOGS]
by_name = pytest.mark.parametrize("case", OURS, ids=lambda case: case.name)


class Answer(NamedTuple):
    """What a client is told of one partition."""

    code: int
    base_offset: int
    has_append_time: bool
    log_start_offset: int
    record_errors: list[tuple[int, str | None]]
    message: str | None


def ask(log: PartitionLog, data: bytes) -> Answer:
    try:
        done = log.append(bytearray(data), 0)
    except AppendRefused as refused:
        errors = [(error.index, error.message) for error in refused.record_errors]
        start = log.start_offset if refused.tells_start else -1
        return Answer(refused.code, -1, False, start, list(errors), refused.told)
    told = (done.first_offset, done.log_append_time >= 0, done.log_start_offset)
    return Answer(0, *told, [], None)


def answer_of(said: PartitionProduceResponse) -> Answer:
    return Answer(
        said.error_code,
        said.base_offset,
        said.log_append_time_ms >= 0,
        said.log_start_offset,
        [(error.batch_index, error.batch_index_error_message) for error in said.record_errors],
        said.error_message,
    )


@by_name
def test_a_batch_gets_kafkas_code(case: Case, tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "t-0", log_config(case.settings), clock=Clock())
    answer = ask(log, case.make(NOW))
    assert answer.code == (87 if case.name in REFUSED_HERE else case.code)
    assert log.end_offset == (0 if answer.code else len(list(_records(log))))


def _records(log: PartitionLog) -> Iterator[object]:
    for batch in batches(log.read(0, 1_000_000).read()):
        yield from batch.records()


def test_what_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "t-0", clock=Clock())
    log.append(one("first"), 0)
    before = (log.size, log.end_offset, log.producers.end_offset, len(log.producers))
    for case in OURS:
        if case.code and not case.settings:
            with pytest.raises(AppendRefused):
                log.append(bytearray(case.make(NOW)), 0)
    assert (log.size, log.end_offset, log.producers.end_offset, len(log.producers)) == before


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    settings = {"internal.segment.bytes": "200"}
    log = PartitionLog.open(tmp_path / "t-0", log_config(settings), clock=Clock())
    with pytest.raises(AppendRefused) as refused:
        log.append(one(b"x" * 300), 0)
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_buffer_that_cannot_be_written_to_is_copied(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "t-0", clock=Clock())
    data = bytes(one("v"))
    log.append(data, 5)
    log.append(data, 5)
    [first, second] = batches(log.read(0, 10_000).read())
    assert (first.base_offset, second.base_offset) == (0, 1)
    assert second.partition_leader_epoch == 5


@pytest.mark.oracle
def test_kafka_says_the_same(tmp_path: Path, kafka_4_3: KraftCluster, driver_4_3: Driver) -> None:
    """Fields of the answer, and what is then on the disk; texts but for the times in them."""
    wire = Wire((HOST, kafka_4_3.port(1)))
    try:
        for n, case in enumerate(CASES):
            topic = f"odd-{n}"
            driver_4_3.do("createTopic", name=topic, configs=dict(case.settings))
            now = wall_clock()
            data = case.make(now)
            theirs = answer_of(wire.produce(topic, data))
            assert theirs.code == case.code, case.name
            if case.name in (*REFUSED_HERE, *NOT_THE_LOGS):
                continue
            # The same batch at about the same moment of our clock.
            log = PartitionLog.open(tmp_path / f"{topic}-0", log_config(case.settings))
            ours = ask(log, data)
            assert _timeless(ours) == _timeless(theirs), case.name
            stored = kafka_4_3.data(1) / f"{topic}-0" / "00000000000000000000.log"
            # A batch may be refused before the broker has made the partition's directory.
            written = stored.read_bytes() if stored.exists() else b""
            assert _stored(log.read(0, 1_000_000).read()) == _stored(written), case.name
    finally:
        wire.close()


def _timeless(answer: Answer) -> Answer:
    """Without the limits that are now, give or take, and with texts that are whole."""
    errors = [
        (index, (text or "").partition(" within [")[0]) for index, text in answer.record_errors
    ]
    return answer._replace(record_errors=list(errors))


def _stored(data: bytes) -> list[object]:
    """Headers and records; the bytes themselves where neither codec nor clock matters."""
    found: list[object] = []
    for batch in batches(data):
        fields = (batch.base_offset, batch.last_offset, batch.codec, batch.attributes)
        producer = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        records = [(r.offset, r.key, r.value, r.headers) for r in batch.records()]
        found.append((fields, producer, batch.partition_leader_epoch, batch.count, records))
        if batch.timestamp_type == "CreateTime":
            found.append([batch.max_timestamp, *(r.timestamp for r in batch.records())])
            if not batch.codec:
                found.append(bytes(batch.data))
    return found
