"""Answers that are not there yet: fetches that wait for records, producers for what they asked."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from kraftline.broker.partition import Partition
from kraftline.schema.api.delete_topics import DeleteTopicsRequest
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import FetchRequest, FetchResponse, PartitionData
from kraftline.schema.api.list_offsets import ListOffsetsResponse
from kraftline.schema.api.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from kraftline.schema.uuids import Uuid
from tests.broker.running import Running, create_topic, running
from tests.broker.stories import batch, fetch, offsets, produce, wanted
from tests.broker.talking import Closed, Talk

LONG = 20_000  # ms: whoever waits that long has not been woken
SOON = 5.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ours")) as node:
        yield node


@pytest.fixture
def talk(node: Running) -> Iterator[Talk]:
    with Talk(node.address) as talk:
        yield talk


@pytest.fixture
def other(node: Running) -> Iterator[Talk]:
    with Talk(node.address) as talk:
        yield talk


@pytest.fixture
def topic(node: Running, request: pytest.FixtureRequest) -> tuple[str, Uuid]:
    name = re.sub(r"\W", "-", request.node.name)
    return name, create_topic(node.address, name, partitions=2)


def partition_of(node: Running, topic: tuple[str, Uuid]) -> Partition:
    found = node.node.broker.partitions.get(topic[0], 0)
    assert found is not None
    return found


def given(talk: Talk, request: FetchRequest, version: int = 12) -> list[PartitionData]:
    answer = talk.receive(request, version)
    assert isinstance(answer, FetchResponse)
    return [each for topic in answer.responses for each in topic.partitions]


def produced(talk: Talk, request: ProduceRequest, version: int = 9) -> PartitionProduceResponse:
    [topic] = talk.ask_for(ProduceResponse, request, version).responses
    return topic.partition_responses[0]


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_append_wakes_a_waiting_fetch(
    node: Running, talk: Talk, other: Talk, topic: tuple[str, Uuid]
) -> None:
    request = fetch(topic, wanted(0), wanted(1), least=1, wait_ms=LONG)
    talk.send(request, 12)
    until(lambda: bool(partition_of(node, topic).waiting))
    start = time.monotonic()
    produced(other, produce(topic, [(0, batch())]))
    [first, second] = given(talk, request)
    assert time.monotonic() - start < SOON
    assert first.records is not None
    assert (first.records[16:], second.records) == (batch()[16:], b"")
    assert first.high_watermark == 1
    assert not partition_of(node, topic).waiting


def test_a_fetch_waits_for_all_the_bytes_that_it_wants(
    talk: Talk, other: Talk, topic: tuple[str, Uuid]
) -> None:
    size = len(batch())
    request = fetch(topic, wanted(0), wanted(1), least=3 * size, wait_ms=LONG)
    talk.send(request, 12)
    for partition in (0, 1):
        produced(other, produce(topic, [(partition, batch())]))
    talk.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        talk.socket.recv(1)
    talk.socket.settimeout(30)
    produced(other, produce(topic, [(1, batch())]))
    assert [len(each.records or b"") for each in given(talk, request)] == [size, 2 * size]


def test_a_topic_that_is_deleted_wakes_who_waits_for_it(
    node: Running, talk: Talk, other: Talk, topic: tuple[str, Uuid]
) -> None:
    request = fetch(topic, wanted(0), least=1, wait_ms=LONG)
    talk.send(request, 12)
    until(lambda: bool(partition_of(node, topic).waiting))
    other.ask(DeleteTopicsRequest(topic_names=(topic[0],), timeout_ms=5000), 5)
    [data] = given(talk, request)
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_that_goes_away_waits_no_more(node: Running, topic: tuple[str, Uuid]) -> None:
    partition = partition_of(node, topic)
    with Talk(node.address) as talk:
        talk.send(fetch(topic, wanted(0), least=1, wait_ms=LONG), 12)
        until(lambda: bool(partition.waiting))
    until(lambda: not partition.waiting)


def test_requests_behind_a_waiting_fetch_are_answered_after_it(
    talk: Talk, topic: tuple[str, Uuid]
) -> None:
    waiting = fetch(topic, wanted(0), least=1, wait_ms=300)
    talk.send(waiting, 12)
    behind = offsets(topic[0], (0, -1))
    talk.send(behind, 7)
    assert [each.records for each in given(talk, waiting)] == [b""]
    assert isinstance(talk.receive(behind, 7), ListOffsetsResponse)


def test_nothing_is_answered_to_acks_0(talk: Talk, topic: tuple[str, Uuid]) -> None:
    for _ in range(3):
        talk.send(produce(topic, [(0, batch())], acks=0), 9)
    [found] = talk.ask_for(ListOffsetsResponse, offsets(topic[0], (0, -1)), 7).topics
    assert found.partitions[0].offset == 3


@pytest.mark.parametrize("odd", [("nowhere", 0, batch()), (None, 7, batch()), (None, 0, b"x" * 99)])
def test_an_error_with_acks_0_closes_the_connection(
    talk: Talk, topic: tuple[str, Uuid], odd: tuple[str | None, int, bytes]
) -> None:
    name, partition, data = odd
    talk.send(produce((name or topic[0], topic[1]), [(partition, data)], acks=0), 9)
    with pytest.raises(Closed):
        talk.frame()


def test_what_is_not_on_all_replicas_is_not_acknowledged(
    node: Running, talk: Talk, other: Talk, topic: tuple[str, Uuid]
) -> None:
    partition = partition_of(node, topic)
    registration = partition.registration
    assert registration is not None
    produced(talk, produce(topic, [(0, batch())], acks=-1))
    two = msgspec.structs.replace(
        registration, replicas=(1, 2), isr=(1, 2), directories=registration.directories * 2
    )
    node.run(lambda: partition.lead(two))
    late = produced(talk, produce(topic, [(0, batch())], acks=-1, timeout_ms=200))
    assert (late.error_code, late.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert produced(talk, produce(topic, [(0, batch())], acks=1)).base_offset == 2
    # A consumer sees what is committed, a replica everything; by its next fetch the leader knows
    # what it has.
    other.send(request := fetch(topic, wanted(0, 1)), 12)
    [data] = given(other, request)
    assert (data.high_watermark, data.records) == (1, b"")
    waiting = produce(topic, [(0, batch())], acks=-1, timeout_ms=LONG)
    talk.send(waiting, 9)
    until(lambda: partition.log.end_offset == 4)
    other.send(request := fetch(topic, wanted(0, 1), replica=2), 12)
    [data] = given(other, request)
    assert len(data.records or b"") == 3 * len(batch())
    other.send(request := fetch(topic, wanted(0, 4), replica=2, wait_ms=0), 12)
    given(other, request)
    answer = talk.receive(waiting, 9)
    assert isinstance(answer, ProduceResponse)
    [done] = answer.responses[0].partition_responses
    assert (done.error_code, done.base_offset) == (ErrorCode.NONE, 3)
    assert partition.log.high_watermark == 4
    node.run(lambda: partition.lead(registration))


def test_a_flush_is_waited_for_and_holds_up_nobody_else(
    node: Running, talk: Talk, other: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ("flushed", create_topic(node.address, "flushed", {"flush.messages": "1"}))
    go_on = threading.Event()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (go_on.wait(20), real(fd)))
    request = produce(topic, [(0, batch())])
    talk.send(request, 9)
    # Written, readable, and not acknowledged yet.
    until(lambda: partition_of(node, topic).log.end_offset == 1)
    other.send(asked := fetch(topic, wanted(0)), 12)
    assert len(given(other, asked)[0].records or b"") == len(batch())
    assert partition_of(node, topic).log.recovery_point == 0
    talk.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        talk.socket.recv(1)
    talk.socket.settimeout(30)
    go_on.set()
    assert isinstance(talk.receive(request, 9), ProduceResponse)
    assert partition_of(node, topic).log.recovery_point == 1


def test_those_who_wait_together_share_a_flush(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from kraftline.storage.log import LogConfig, PartitionLog, Stopped

    log = PartitionLog.open(tmp_path / "t-0", LogConfig(), stopped=Stopped())
    partition = Partition(1, log, Uuid(bytes(16)))
    flushes = 0

    class Counting(ThreadPoolExecutor):
        def submit(self, *args: object, **named: object):  # type: ignore[no-untyped-def]
            nonlocal flushes
            flushes += 1
            return super().submit(*args, **named)  # type: ignore[arg-type]  # forwarded

    async def work() -> None:
        with Counting(2) as threads:
            for _ in range(5):
                log.append(batch(), 0)
            await asyncio.gather(*(partition.flushed(n + 1, threads) for n in range(5)))
            assert flushes == 1
            log.append(batch(), 0)
            first = asyncio.ensure_future(partition.flushed(6, threads))
            await asyncio.sleep(0)
            log.append(batch(), 0)
            await asyncio.gather(first, partition.flushed(7, threads))
            assert flushes in (2, 3)
            assert log.recovery_point == 7
            # A flush that is over, while the loop has not come to telling of it.
            log.append(batch(), 0)
            partition._flush = asyncio.get_running_loop().create_future()
            partition._flush.set_result(7)
            await partition.flushed(8, threads)
            assert log.recovery_point == 8

    asyncio.run(work())
    log.close()
