"""Topics are made and removed: ours answers and writes what a real node did for the same requests,
good and odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.api.delete_topics import DeleteTopicState
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.telling import hold_equal, plain, read, topics_by_us
from tests.controller.topic_requests import STRANGE_ID, by_id, create, delete, topic
from tests.fixtures.controller.make import FILE, by_kafka
from tests.oracle.kafka import HOST, KraftCluster


def test_answers_and_records_are_kafkas(tmp_path: Path) -> None:
    hold_equal(topics_by_us(tmp_path / "data"), read(FILE)["topics"])


@pytest.mark.soak
@pytest.mark.oracle
def test_kafka_still_answers_so(tmp_path: Path) -> None:
    hold_equal(by_kafka("topics", tmp_path / "kafka"), read(FILE)["topics"])


@pytest.mark.oracle
def test_deletion_that_is_switched_off_is_refused_as_by_kafka(tmp_path: Path) -> None:
    settings = {"delete.topic.enable": "false"}
    with KraftCluster(tmp_path / "kafka", properties=settings, dynamic=True) as kafka:
        kafka.start()
        theirs = _refusals((HOST, kafka.port(1)))
    with running(tmp_path / "ours", settings) as node:
        ours = _refusals(node.address)
    assert ours == theirs


def _refusals(address: tuple[str, int]) -> list[Any]:
    with Talk(address) as talk:
        talk.ask(create(topic("kept")), 7)
        answers = [talk.ask(delete("kept", "nothing"), version) for version in range(1, 6)]
        known = DeleteTopicState(name="kept")
        answers.append(talk.ask(by_id(known, DeleteTopicState(topic_id=STRANGE_ID)), 6))
        again = plain(talk.ask(create(topic("kept")), 7))
    return [*map(plain, answers), [each["error_code"] for each in again["topics"]]]
