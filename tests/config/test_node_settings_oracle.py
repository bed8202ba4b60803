"""What a node makes of its listeners, quorum and directories, and what it says when it refuses
them: real Kafka is asked the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from kraftline.config.effective import Config
from kraftline.config.listeners import Endpoint
from kraftline.config.node_settings import node_settings
from kraftline.config.values import BadConfig
from tests.oracle.lines import LineProgram, Refused

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}
EXPLICIT = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT,"
    "THIRD:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
}


def listening(listeners: str, **more: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return {**EXPLICIT, "listeners": listeners, **named}


SASL = listening(
    "SASL_PLAINTEXT://:9092,CONTROLLER://:9093", security_inter_broker_protocol="SASL_PLAINTEXT"
)
CASES: tuple[Mapping[str, str], ...] = (
    {},
    {"listeners": "PLAINTEXT://:9092"},
    {"listeners": "CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://h:9092,PLAINTEXT://i:9094,CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://h:9092,SSL://i:9094,CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT:9092,CONTROLLER://:9093"},
    {"listeners": "EXTERNAL://:9092,CONTROLLER://:9093"},
    {"listeners": "plaintext://:9092, CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://[::1]:9092,CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://h_x:9092,CONTROLLER://:9093"},
    {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"},
    {"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9092,CONTROLLER://:9093"},
    {"listeners": "://:9092,CONTROLLER://:9093"},
    {"listeners": ""},
    listening("PLAINTEXT://h:9092,SSL://i:9092,CONTROLLER://:9093"),
    listening("PLAINTEXT://1.2.3.4:9092,SSL://[::1]:9092,CONTROLLER://:9093"),
    listening("PLAINTEXT://1.2.3.4:9092,SSL://1.2.3.5:9092,CONTROLLER://:9093"),
    listening("PLAINTEXT://1.2.3.4:9092,SSL://[::1]:9092,THIRD://1.2.3.6:9092,CONTROLLER://:1"),
    listening("PLAINTEXT://1.2.3.4:9092,SSL://[::1]:9092,THIRD://h:9092,CONTROLLER://:9093"),
    listening("PLAINTEXT://:0,SSL://:0,CONTROLLER://:0"),
    listening("PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"),
    listening("SSL://:9092,CONTROLLER://:9093", security_inter_broker_protocol="SSL"),
    SASL,
    {**SASL, "sasl.enabled.mechanisms": "PLAIN"},
    {**SASL, "sasl.enabled.mechanisms": ""},
    {**SASL, "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN"},
    {
        **SASL,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    },
    listening(
        "PLAINTEXT://:9092,SSL://:9094,CONTROLLER://:9093",
        advertised_listeners="PLAINTEXT://h:9092,SSL://h:9092",
    ),
    {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
    {"advertised.listeners": "PLAINTEXT://h:9092,CONTROLLER://0.0.0.0:9093"},
    {"advertised.listeners": "PLAINTEXT://h:9092,CONTROLLER://i:9095"},
    {"advertised.listeners": "PLAINTEXT://h:9092,PLAINTEXT://i:9092"},
    {"advertised.listeners": "PLAINTEXT://h:9092,SSL://h:1"},
    {"advertised.listeners": "SSL://h:1"},
    {"advertised.listeners": ""},
    {"inter.broker.listener.name": "SSL"},
    {"inter.broker.listener.name": "CONTROLLER"},
    {"inter.broker.listener.name": "FOO"},
    {"inter.broker.listener.name": "plaintext"},
    {"security.inter.broker.protocol": "SSL"},
    {"security.inter.broker.protocol": "SSL", "inter.broker.listener.name": "PLAINTEXT"},
    {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
    {"listener.security.protocol.map": "PLAINTEXT:NONE,CONTROLLER:PLAINTEXT"},
    {"listener.security.protocol.map": ""},
    {"listener.security.protocol.map": "a:b:PLAINTEXT, PLAINTEXT : SSL,CONTROLLER:plaintext"},
    {"controller.listener.names": "CONTROLLER,X"},
    {"controller.listener.names": "CONTROLLER,CONTROLLER"},
    {"controller.listener.names": "X"},
    {"controller.listener.names": "controller"},
    {"controller.listener.names": ""},
    {"controller.quorum.bootstrap.servers": ""},
    {"controller.quorum.bootstrap.servers": "x"},
    {"controller.quorum.voters": "1@h:9099"},
    {"controller.quorum.voters": "1@h:9093,2@h:9094", "controller.quorum.bootstrap.servers": ""},
    {"controller.quorum.voters": "2@h:9093"},
    {"controller.quorum.voters": "x"},
    {"process.roles": "broker"},
    {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"},
    {"process.roles": "broker", "controller.quorum.voters": "1@h:1"},
    {"process.roles": "controller"},
    {"process.roles": "controller", "listeners": "CONTROLLER://:9093"},
    {"log.dirs": "/a,/b", "metadata.log.dir": "/m"},
    {"log.dir": "/a,/b"},
    {"log.dirs": "/a,/a"},
    {"log.dirs": ""},
    {"broker.id": "2"},
    {"broker.id": "1"},
    {"node.id": "-1"},
    {"max.connections.per.ip": "0"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:4"},
    {"log.roll.ms": "0"},
    {"log.roll.hours": "1", "log.roll.jitter.ms": "-1"},
    {"log.retention.ms": "0"},
    {"log.retention.minutes": "0"},
    {"log.cleaner.dedupe.buffer.size": "1000"},
    {"replica.fetch.wait.max.ms": "40000"},
    {"queued.max.request.bytes": "5"},
    {"connection.failed.authentication.delay.ms": "600000"},
)


class Kafka(LineProgram):
    main = "NodeConfig"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as program:
        yield program


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_node_s_settings_are_kafka_s(kafka: Kafka, case: Mapping[str, str]) -> None:
    given = {**NODE, **case}
    try:
        theirs: object = kafka.ask(given)
    except Refused as refused:
        theirs = str(refused).removeprefix("requirement failed: ")
    assert _ours(given) == theirs


def _ours(given: Mapping[str, str]) -> object:
    try:
        found = node_settings(Config({name: (text, "test") for name, text in given.items()}))
    except BadConfig as problem:
        return str(problem)
    return {
        "nodeId": found.node_id,
        "interBroker": found.listeners.inter_broker,
        "metadataLogDir": found.metadata_log_dir,
        "logDirs": list(found.log_dirs),
        "listeners": _said(found.listeners.brokers),
        "controllers": _said(found.listeners.controllers),
        "advertised": _said(found.listeners.advertised),
        "advertisedControllers": _said(found.listeners.advertised_controllers),
    }


def _said(endpoints: tuple[Endpoint, ...]) -> list[str]:
    return [f"{each.name} {each.host} {each.port} {each.protocol}" for each in endpoints]
