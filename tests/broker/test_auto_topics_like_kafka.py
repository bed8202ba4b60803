"""Asking for topics that are not there, of a real node and of ours: what the answers say until the
topics are there, and what was made."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.oracle.kafka import HOST, KraftCluster

_SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
_NAMES = ("plain", "__consumer_offsets", "__transaction_state", "__share_group_state")
_NEVER = ("a b", "", "x" * 250, "plai.n_")


class Told(msgspec.Struct):
    """The errors that came before each topic was there, and what was written."""

    before: dict[str, list[str]]
    refused: list[tuple[str, str, bool]]
    unwanted: list[str]
    batches: list[LoggedBatch]


@pytest.mark.oracle
def test_topics_are_made_on_demand_as_by_kafka(tmp_path: Path) -> None:
    with KraftCluster(tmp_path / "kafka", properties=_SETTINGS, dynamic=True) as kafka:
        kafka.start()
        theirs = _tell((HOST, kafka.port(1)), kafka.data(1))
    ours_at = tmp_path / "ours"
    with running(ours_at, _SETTINGS) as node:
        ours = _tell(node.address, ours_at)
    assert ours == theirs
    assert theirs.before == {name: ["UNKNOWN_TOPIC_OR_PARTITION"] for name in _NAMES}


def test_nothing_is_made_where_the_broker_does_not_allow_it(tmp_path: Path) -> None:
    settings = {"auto.create.topics.enable": "false"}
    with running(tmp_path / "ours", settings) as node, Talk(node.address) as talk:
        for _ in range(3):
            assert _errors(talk, ["wanted"]) == ["UNKNOWN_TOPIC_OR_PARTITION"]
            time.sleep(0.05)


def _tell(address: tuple[str, int], data: Path) -> Told:
    start = end_offset(data)
    before = {}
    with Talk(address) as talk:
        unwanted = _errors(talk, ["unwanted"], allowed=False)
        time.sleep(0.3)
        unwanted += _errors(talk, ["unwanted"], allowed=False)
        for name in _NAMES:
            before[name] = _until_there(talk, name)
        answer = talk.ask_for(MetadataResponse, _asking(_NEVER), 12)
        refused = sorted(
            (each.name or "", ErrorCode(each.error_code).name, each.is_internal)
            for each in answer.topics
        )
        time.sleep(0.3)
    return Told(before, refused, unwanted, [in_order(each) for each in read_batches(data, start)])


def _until_there(talk: Talk, name: str) -> list[str]:
    """The different errors that came, in their order."""
    seen: list[str] = []
    end = time.monotonic() + 20
    while time.monotonic() < end:
        [error] = _errors(talk, [name])
        if error == "NONE":
            return list(dict.fromkeys(seen))
        seen.append(error)
    raise AssertionError(f"{name} did not come: {seen[-1]}")


def _errors(talk: Talk, names: list[str], *, allowed: bool = True) -> list[str]:
    answer = talk.ask_for(MetadataResponse, _asking(names, allowed=allowed), 12)
    return [ErrorCode(each.error_code).name for each in answer.topics]


def _asking(names: tuple[str, ...] | list[str], *, allowed: bool = True) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=allowed,
    )
