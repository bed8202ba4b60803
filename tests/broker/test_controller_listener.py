"""The controller's listener: what it answers is what a real controller's listener answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import kraftline
from kraftline.node.thread import NodeThread
from kraftline.schema.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraftline.schema.api.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Listener,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.metadata import MetadataRequest
from kraftline.schema.types import Message
from tests.broker.controller_requests import FAR, of_administrators, requests
from tests.broker.talking import Closed, Talk
from tests.oracle.java import run
from tests.oracle.kafka import KraftCluster

Address = tuple[str, int]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeThread]:
    root = tmp_path_factory.mktemp("controller")
    with kraftline.Node({"log.dirs": root / "data"}) as running:
        yield running


def address(node: NodeThread) -> Address:
    return "127.0.0.1", node.node.controller_listeners[0].port


def answer(where: Address, request: Message, version: int) -> Any:
    with Talk(where) as talk:
        found = msgspec.to_builtins(talk.ask(request, version), enc_hook=str)
        for each in found.get("brokers", ()):
            each.pop("port")
        if found.get("cluster_id"):
            found["cluster_id"] = "its own"
        return found


@pytest.mark.oracle
def test_the_controller_answers_as_kafkas(node: NodeThread, kafka_4_3: KraftCluster) -> None:
    theirs = kafka_4_3.controller_endpoint(1)
    ours = zip(requests(node.cluster_id), requests(kafka_4_3.cluster_id), strict=True)
    for (request, version), (same, _) in ours:
        found = answer(address(node), request, version)
        assert found == answer(theirs, same, version), (request, version)


@pytest.mark.oracle
def test_administrators_are_answered_as_by_kafkas_controller(
    node: NodeThread, kafka_4_3: KraftCluster
) -> None:
    theirs = kafka_4_3.controller_endpoint(1)
    for request, version in of_administrators():
        found = answer(address(node), request, version)
        assert found == answer(theirs, request, version), (request, version)


@pytest.mark.oracle
def test_what_is_announced_is_what_kafkas_controller_announces_or_less(
    node: NodeThread, kafka_4_3: KraftCluster
) -> None:
    asked = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    found = []
    for where in (address(node), kafka_4_3.controller_endpoint(1)):
        with Talk(where) as talk:
            found.append(talk.ask_for(ApiVersionsResponse, asked, 4))
    ours, theirs = found
    known = {each.api_key: each for each in theirs.api_keys}
    assert all(known[each.api_key] == each for each in ours.api_keys)
    for field in ("supported_features", "finalized_features"):
        assert set(getattr(ours, field)) == set(getattr(theirs, field)), field
    missing = known.keys() - {each.api_key for each in ours.api_keys}
    # Other voters' and brokers' affairs: fetches of the metadata log, votes, forwarded requests.
    assert missing >= {1, 52, 53, 54, 58, 59, 80, 81, 82}


@pytest.mark.oracle
def test_what_a_controller_does_not_answer_closes_the_connection(
    node: NodeThread, kafka_4_3: KraftCluster
) -> None:
    for where in (address(node), kafka_4_3.controller_endpoint(1)):
        with Talk(where) as talk, pytest.raises((Closed, OSError)):
            talk.ask(MetadataRequest(topics=None), 12)


def test_an_address_that_nobody_could_use_is_not_registered(node: NodeThread) -> None:
    for listener in (Listener(name="A", host="", port=9), Listener(name="A", host="h", port=0)):
        request = ControllerRegistrationRequest(controller_id=FAR + 1, listeners=(listener,))
        with Talk(address(node)) as talk:
            told = talk.ask_for(ControllerRegistrationResponse, request, 0)
        assert told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert FAR + 1 not in node.node.controller.image.cluster.controllers


def test_a_controllers_listener_with_sasl_answers_nobody_unknown() -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{login} user_admin="secret";',
    }
    with kraftline.Node(settings) as running:
        asked = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        with Talk(address(running)) as talk:
            talk.ask_for(ApiVersionsResponse, asked, 3)
            with pytest.raises((Closed, OSError)):
                talk.ask(ControllerRegistrationRequest(controller_id=FAR), 0)


def test_whoever_may_not_act_for_the_cluster_registers_nothing() -> None:
    kind = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": kind, "super.users": "User:admin"}
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with kraftline.Node(settings) as running, Talk(address(running)) as talk:
        for request, version in requests(running.cluster_id):
            if type(request).__name__.startswith(("Broker", "Allocate", "Assign", "Controller")):
                told = msgspec.to_builtins(talk.ask(request, version), enc_hook=str)
                assert told["error_code"] == refused, request


@pytest.mark.oracle
def test_kafkas_tools_reach_the_controller(node: NodeThread) -> None:
    host, port = address(node)
    where = ["--bootstrap-controller", f"{host}:{port}"]
    said = run("org.apache.kafka.tools.ClusterTool", ["cluster-id", *where], timeout=90)
    assert node.cluster_id in said
    arguments = [*where, "describe", "--status"]
    said = run("org.apache.kafka.tools.MetadataQuorumCommand", arguments, timeout=90)
    assert f"CONTROLLER://{host}:{port}" in said
