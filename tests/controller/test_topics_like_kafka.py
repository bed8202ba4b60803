"""The same requests, good and odd, to a real node and to ours: the same answers, and the same
records in both metadata logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftline.schema.api.create_topics import CreateTopicsResponse
from kraftline.schema.api.delete_topics import DeleteTopicsResponse
from kraftline.schema.types import Message
from kraftline.schema.uuids import ZERO, Uuid
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.controller.topic_requests import creations, deletions
from tests.oracle.kafka import HOST, KraftCluster

# Of the file that the real node is started with: they are told in the answers.
_SAID = {"log.index.size.max.bytes": "4096", "num.partitions": "1", "node.id": "1"}


class Told(msgspec.Struct):
    """What a node said to each request, and what it wrote."""

    answers: list[tuple[object, object]]
    batches: list[LoggedBatch]


@pytest.fixture(scope="module")
def by_kafka(tmp_path_factory: pytest.TempPathFactory) -> Told:
    with KraftCluster(tmp_path_factory.mktemp("kafka"), dynamic=True) as kafka:
        kafka.start()
        return _tell((HOST, kafka.port(1)), kafka.data(1))


@pytest.fixture(scope="module")
def by_us(tmp_path_factory: pytest.TempPathFactory) -> Told:
    data = tmp_path_factory.mktemp("ours") / "data"
    with running(data, _SAID) as node:
        return _tell(node.address, data)


@pytest.mark.oracle
def test_answers_are_kafkas(by_kafka: Told, by_us: Told) -> None:
    for (request, expected), (_, answer) in zip(by_kafka.answers, by_us.answers, strict=True):
        assert answer == expected, request


@pytest.mark.oracle
def test_records_are_kafkas(by_kafka: Told, by_us: Told) -> None:
    assert by_us.batches == by_kafka.batches


def _tell(address: tuple[str, int], data: Path) -> Told:
    start = end_offset(data)
    answers: list[tuple[object, object]] = []
    ids: dict[str, Uuid] = {}

    def ask_all(talk: Talk, requests: Iterable[tuple[Message, int]]) -> None:
        for request, version in requests:
            answer = talk.ask(request, version)
            answers.append(((version, request), _plain(answer)))
            if isinstance(answer, CreateTopicsResponse):
                ids.update(
                    {each.name: each.topic_id for each in answer.topics if each.topic_id != ZERO}
                )

    with Talk(address) as talk:
        ask_all(talk, creations(1))
        ask_all(talk, deletions(ids))
    written = [_removals_in_order(batch) for batch in read_batches(data, start)]
    return Told(answers, written)


def _removals_in_order(batch: LoggedBatch) -> LoggedBatch:
    return in_order(batch) if batch[0][0].startswith("REMOVE_TOPIC") else batch


def _plain(answer: Message) -> object:
    """Without ids, and with what Kafka shuffles in one order."""
    found: Any = msgspec.to_builtins(answer, enc_hook=str)
    for topic in found.get("topics", ()) or found.get("responses", ()):
        topic["topic_id"] = topic["topic_id"] != str(ZERO)
    if isinstance(answer, DeleteTopicsResponse):
        found["responses"] = sorted(found["responses"], key=str)
    return found
