"""From frames to answers, whatever the frame and whatever an API's function does."""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraftline.broker import registry
from kraftline.broker.broker import Broker
from kraftline.broker.context import Context
from kraftline.broker.requests import Requests
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.api_versions import ApiVersionsRequest
from kraftline.schema.api.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kraftline.schema.api.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kraftline.schema.api.registry import api
from kraftline.server.connection import CloseConnection, Connection
from kraftline.server.parts import Answer
from tests.recorder.frames import answered, frame, header

METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CLUSTER = 3, 18, 23, 60
CONNECTION = cast(
    Connection, SimpleNamespace(listener=SimpleNamespace(name="PLAINTEXT"), peer="1.2.3.4:5")
)


@pytest.fixture
def requests() -> Requests:
    return Requests(cast(Broker, SimpleNamespace()))


def raising(problem: Exception) -> Callable[[Any, Context], None]:
    def answer(request: Any, context: Context) -> None:
        raise problem

    return answer


def raising_later(problem: Exception) -> Callable[[Any, Context], Awaitable[None]]:
    async def answer(request: Any, context: Context) -> None:
        raise problem

    return answer


def answering(
    monkeypatch: pytest.MonkeyPatch, name: str, function: Callable[[Any, Context], object]
) -> None:
    monkeypatch.setattr(import_module(f"kraftline.broker.apis.{name}"), "answer", function)


def given(answer: Answer | Awaitable[Answer]) -> bytes:
    if answer is not None and not isinstance(answer, list):
        running = answer.__await__()
        try:
            next(running)
        except StopIteration as end:
            answer = end.value
    assert isinstance(answer, list)
    return b"".join(cast("list[bytes]", answer))


def test_every_api_that_is_announced_has_a_function() -> None:
    for key, name in registry.MODULES.items():
        module = import_module(f"kraftline.broker.apis.{name}")
        assert callable(module.answer), name
        assert registry.answered(key) is not None


def test_what_is_announced_is_what_is_answered() -> None:
    for key, low, high in registry.announced():
        versions = registry.answered(key)
        assert versions is not None
        # Kafka announces Produce from 0 and answers from 3.
        assert (low, high) == (0 if key == 0 else versions.first, versions.last)
        assert high <= api(key).versions.last


@pytest.mark.parametrize("make", [raising, raising_later])
def test_a_refusal_becomes_the_error_of_each_topic(
    requests: Requests, monkeypatch: pytest.MonkeyPatch, make: Callable[[Exception], Any]
) -> None:
    refusal = Refusal(ErrorCode.INVALID_REQUEST, "no")
    answering(monkeypatch, "metadata", make(refusal))
    asked = frame(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), METADATA, 13)
    said = answered(given(requests.handle(asked, CONNECTION)), METADATA, 13)
    assert isinstance(said, MetadataResponse)
    assert [(each.name, each.error_code) for each in said.topics] == [("t", 42)]
    assert said.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("make", [raising, raising_later])
def test_a_mistake_of_ours_is_told_and_logged(
    requests: Requests,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[Exception], Any],
) -> None:
    answering(monkeypatch, "describe_cluster", make(ZeroDivisionError("a mistake")))
    asked = frame(DescribeClusterRequest(), DESCRIBE_CLUSTER, 1)
    with caplog.at_level(logging.ERROR):
        answer = given(requests.handle(asked, CONNECTION))
    said = answered(answer, DESCRIBE_CLUSTER, 1)
    assert isinstance(said, DescribeClusterResponse)
    assert said.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "DescribeCluster version 1 of 1.2.3.4:5 failed" in caplog.text
    assert "a mistake" in caplog.text


def test_an_answer_without_a_place_for_an_error_closes_the_connection(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("kraftline.broker.apis.offset_for_leader_epoch")
    monkeypatch.delattr(module, "failed", raising=False)
    answering(monkeypatch, "offset_for_leader_epoch", raising(ValueError("a mistake")))
    asked = frame(OffsetForLeaderEpochRequest(), OFFSET_FOR_LEADER_EPOCH, 4)
    with pytest.raises(CloseConnection, match="no place for an error"):
        requests.handle(asked, CONNECTION)


def test_whoever_wants_the_connection_closed_has_it_closed(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, "metadata", raising(CloseConnection("enough")))
    asked = frame(MetadataRequest(topics=()), METADATA, 12)
    with pytest.raises(CloseConnection, match="enough"):
        requests.handle(asked, CONNECTION)


@pytest.mark.parametrize(
    ("client_id", "told"),
    [(None, None), ("", ""), ("me", "me"), (b"M\xfcller", "M\ufffdller")],
)
def test_a_client_is_called_as_it_calls_itself(
    requests: Requests,
    monkeypatch: pytest.MonkeyPatch,
    client_id: str | bytes | None,
    told: str | None,
) -> None:
    heard = []

    def answer(request: Any, context: Context) -> DescribeClusterResponse:
        heard.append((context.client_id, context.version, context.listener))
        return DescribeClusterResponse()

    answering(monkeypatch, "describe_cluster", answer)
    asked = header(DESCRIBE_CLUSTER, 2, client_id, flexible=True) + b"\0\1\0\0"
    requests.handle(asked, CONNECTION)
    assert heard == [(told, 2, "PLAINTEXT")]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "0 bytes are not a request"),
        (b"\0\3\0\1\0\0\0\1\0", "9 bytes are not a request"),
        (header(999, 0), "API 999 is not answered"),
        (header(METADATA, 99), "Metadata version 99 is not answered"),
        (header(0, 2), "Produce version 2 is not answered"),
        (struct.pack(">hhih", METADATA, 1, 7, 9), "Metadata version 1: a client id of 9 bytes"),
        (header(METADATA, 1) + b"\0\0\0\5", "Metadata version 1: position"),
    ],
)
def test_the_reason_for_closing_is_one_line(requests: Requests, sent: bytes, reason: str) -> None:
    with pytest.raises(CloseConnection) as closing:
        requests.handle(sent, CONNECTION)
    assert str(closing.value).startswith(reason)
    assert "\n" not in str(closing.value)


def test_api_versions_of_the_future_are_answered_in_version_0(requests: Requests) -> None:
    asked = header(API_VERSIONS, 77, flexible=True) + b"whatever"
    answer = given(requests.handle(asked, CONNECTION))
    # Correlation id, error 35, one API: 18 from 0 to 4.
    assert answer[4:] == struct.pack(">hihhh", 35, 1, 18, 0, 4)


def test_api_versions_has_no_tags_in_front(requests: Requests) -> None:
    asked = frame(ApiVersionsRequest(client_software_name=" "), API_VERSIONS, 3)
    answer = given(requests.handle(asked, CONNECTION))
    assert answer[4:6] == struct.pack(">h", ErrorCode.INVALID_REQUEST)
