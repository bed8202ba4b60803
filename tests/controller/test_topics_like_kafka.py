"""The same requests, good and odd, to a real node and to ours: the same answers, and the same
records in both metadata logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftline.schema.api.create_topics import CreateTopicsResponse
from kraftline.schema.api.delete_topics import DeleteTopicsResponse, DeleteTopicState
from kraftline.schema.types import Message
from kraftline.schema.uuids import ZERO, Uuid
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.controller.topic_requests import (
    STRANGE_ID,
    by_id,
    create,
    creations,
    delete,
    deletions,
    topic,
)
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
    for each in found.get("topics", ()) or found.get("responses", ()):
        each["topic_id"] = each["topic_id"] != str(ZERO)
    if isinstance(answer, DeleteTopicsResponse):
        found["responses"] = sorted(found["responses"], key=str)
    return found


@pytest.mark.oracle
def test_deletion_that_is_switched_off_is_refused_as_by_kafka(tmp_path: Path) -> None:
    settings = {"delete.topic.enable": "false"}
    with KraftCluster(tmp_path / "kafka", properties=settings, dynamic=True) as kafka:
        kafka.start()
        theirs = _refusals((HOST, kafka.port(1)))
    with running(tmp_path / "ours", settings) as node:
        ours = _refusals(node.address)
    assert ours == theirs


def _refusals(address: tuple[str, int]) -> list[object]:
    with Talk(address) as talk:
        talk.ask(create(topic("kept")), 7)
        answers = [talk.ask(delete("kept", "nothing"), version) for version in range(1, 6)]
        known = DeleteTopicState(name="kept")
        answers.append(talk.ask(by_id(known, DeleteTopicState(topic_id=STRANGE_ID)), 6))
        answers.append(talk.ask(create(topic("kept")), 7))
    return [_plain(answer) for answer in answers[:-1]] + [_errors(answers[-1])]


def _errors(answer: Message) -> list[int]:
    assert isinstance(answer, CreateTopicsResponse)
    return [each.error_code for each in answer.topics]
