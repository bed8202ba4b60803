"""Configs described and changed: what is asked of real Kafka and of us."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from kraftline.schema.api import alter_configs as legacy
from kraftline.schema.api import incremental_alter_configs as incremental
from kraftline.schema.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraftline.schema.api.list_config_resources import ListConfigResourcesRequest
from kraftline.schema.types import Message
from tests.broker.comparing import Broker

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# Where the two were started with different values: ports, directories, sizes of pools.
_OWN = {
    *("advertised.listeners", "listeners", "log.dirs", "controller.quorum.bootstrap.servers"),
    *("listener.security.protocol.map", "sasl.enabled.mechanisms", "log.dir"),
    "inter.broker.listener.name",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config",
}


def describe(*resources: tuple[Any, ...], synonyms: bool = True) -> DescribeConfigsRequest:
    """Type, name, and keys where not all are wanted."""
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=tuple(keys) if keys else None,
            )
            for kind, name, *keys in resources
        ),
        include_synonyms=synonyms,
    )


def change(
    *resources: tuple[int, str, Iterable[tuple[str, int, str | None]]], validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ),
            )
            for kind, name, changes in resources
        ),
        validate_only=validate_only,
    )


def replace(
    *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
) -> legacy.AlterConfigsRequest:
    return legacy.AlterConfigsRequest(
        resources=tuple(
            legacy.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    legacy.AlterableConfig(name=key, value=value) for key, value in configs.items()
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def told(broker: Broker, request: Message, version: int) -> object:
    """An answer without what the two were started with."""
    answer: Any = broker.ask(request, version)
    for result in answer["results"]:
        result["configs"] = [each for each in result["configs"] if each["name"] not in _OWN]
    return answer


def until(
    broker: Broker, request: Message, ready: Callable[[DescribeConfigsResponse], bool]
) -> object:
    """The answer once a change is seen: brokers learn of it some time after it was made."""
    deadline = time.monotonic() + 60
    while True:
        answer = broker.message(request, 4)
        assert isinstance(answer, DescribeConfigsResponse)
        if ready(answer):
            return told(broker, request, 4)
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)


def is_value(value: str | None) -> Callable[[DescribeConfigsResponse], bool]:
    """Whether the first key that was asked for has a value; None: it is not there."""

    def ready(answer: DescribeConfigsResponse) -> bool:
        configs = answer.results[0].configs
        return (configs[0].value if configs else None) == value

    return ready


# Described


def configs_of_a_topic_in_every_version(broker: Broker) -> list[object]:
    name, _ = broker.topic("own", {"retention.ms": "1000", "cleanup.policy": "compact , delete"})
    plain, _ = broker.topic("plain")
    said = []
    for version in range(1, 5):
        said.append(told(broker, describe((TOPIC, name), (TOPIC, plain)), version))
        said.append(told(broker, describe((TOPIC, name), synonyms=False), version))
    keys = ("retention.ms", "no.such", "segment.ms")
    said.append(told(broker, describe((TOPIC, name, *keys)), 4))
    return said


def configs_of_the_broker_in_every_version(broker: Broker) -> list[object]:
    said = [told(broker, describe((BROKER, "1")), version) for version in range(1, 5)]
    said.append(told(broker, describe((BROKER, "")), 4))
    said.append(told(broker, describe((BROKER, "1", "node.id", "broker.id", "process.roles")), 4))
    return said


def configs_of_groups_and_client_metrics(broker: Broker) -> list[object]:
    return [told(broker, describe((GROUP, "none"), (METRICS, "none")), v) for v in range(1, 5)]


def configs_of_what_is_not_there(broker: Broker) -> list[object]:
    request = describe(
        *((TOPIC, "no-such"), (TOPIC, ""), (TOPIC, "a b"), (BROKER, "7"), (BROKER, "x")),
        *((METRICS, ""), (GROUP, ""), (LOGGER, ""), (LOGGER, "x"), (LOGGER, "7"), (BROKER, "+1")),
    )
    said = [told(broker, request, version) for version in range(1, 5)]
    said += [told(broker, describe((BROKER, ""), (kind, "x")), 4) for kind in (0, 1, 3, 64)]
    return said


def words_of_configs_are_there_when_asked_for(broker: Broker) -> list[object]:
    name, _ = broker.topic("words")
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(resource_type=TOPIC, resource_name=name),
            DescribeConfigsResource(resource_type=BROKER, resource_name="1"),
            DescribeConfigsResource(resource_type=GROUP, resource_name="g"),
        ),
        include_documentation=True,
    )
    answer = broker.message(request, 4)
    assert isinstance(answer, DescribeConfigsResponse)
    return [
        sorted(
            (each.name, bool(each.documentation))
            for each in result.configs
            if each.name not in _OWN
        )
        for result in answer.results
    ]


# Changed


def configs_of_a_topic_change(broker: Broker) -> list[object]:
    name, _ = broker.topic("changed", {"retention.ms": "1000"})
    said: list[object] = []
    for changes, key, value in (
        ([("retention.ms", SET, "2000")], "retention.ms", "2000"),
        ([("retention.ms", DELETE, None)], "retention.ms", "604800000"),
        ([("cleanup.policy", APPEND, "compact")], "cleanup.policy", "delete,compact"),
        ([("cleanup.policy", SUBTRACT, "delete")], "cleanup.policy", "compact"),
        ([("cleanup.policy", SUBTRACT, "compact")], "cleanup.policy", ""),
        ([("cleanup.policy", APPEND, "delete,delete")], "cleanup.policy", "delete"),
        ([("cleanup.policy", DELETE, "x"), ("segment.ms", SET, "5")], "segment.ms", "5"),
        ([("min.insync.replicas", SET, "2")], "min.insync.replicas", "2"),
        ([("min.insync.replicas", DELETE, None)], "min.insync.replicas", "1"),
        ([("max.message.bytes", SET, " 2000 ")], "max.message.bytes", "2000"),
    ):
        said.append(broker.ask(change((TOPIC, name, changes)), 1))
        said.append(until(broker, describe((TOPIC, name, key)), is_value(value)))
    said.append(broker.ask(change((TOPIC, name, [("retention.ms", SET, "7")])), 0))
    said.append(until(broker, describe((TOPIC, name, "retention.ms")), is_value("7")))
    return said


def changes_of_topics_that_cannot_be(broker: Broker) -> list[object]:
    name, _ = broker.topic("refused")
    changes: list[list[tuple[str, int, str | None]]] = [
        [("retention.ms", APPEND, "5")],
        [("retention.ms", SUBTRACT, "5")],
        [("no.such", SET, "5")],
        [("no.such", DELETE, None)],
        [("no.such", APPEND, "5")],
        [("retention.ms", SET, None)],
        [("retention.ms", APPEND, None), ("segment.ms", SET, None)],
        [("retention.ms", SET, "x")],
        [("retention.ms", SET, "-5")],
        [("retention.ms", 7, "5")],
        [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
        [("cleanup.policy", APPEND, "shred")],
        [("min.compaction.lag.ms", SET, "20"), ("max.compaction.lag.ms", SET, "10")],
        [("remote.storage.enable", SET, "true")],
        [("segment.bytes", SET, "1"), ("preallocate", SET, "maybe")],
        [("leader.replication.throttled.replicas", APPEND, "1:2,x")],
        [("", SET, "1")],
        [],
    ]
    said = [broker.ask(change((TOPIC, name, each)), 1) for each in changes]
    kept: list[tuple[str, int, str | None]] = [("retention.ms", SET, "5")]
    others = ("no-such", "", "a b")
    said += [broker.ask(change((TOPIC, other, kept)), 1) for other in others]
    said += [broker.ask(change((kind, "x", kept)), 1) for kind in (0, 1, 3, 5, 64)]
    said.append(broker.ask(change((TOPIC, name, kept), (TOPIC, name, [])), 1))
    said.append(broker.ask(change((TOPIC, name, kept), validate_only=True), 1))
    said.append(broker.ask(change((TOPIC, name, [("no", SET, "1")]), validate_only=True), 0))
    said.append(broker.ask(change((TOPIC, "no-such", kept), (TOPIC, name, [kept[0]])), 1))
    said.append(broker.ask(change(), 1))
    said.append(until(broker, describe((TOPIC, name, "retention.ms")), is_value("5")))
    return said


def configs_of_brokers_change(broker: Broker) -> list[object]:
    """Each change, with what the key then is for the broker and for all of them."""
    said: list[object] = []
    for where, key, operation, text, own, of_all in (
        ("1", "log.retention.ms", SET, "5000", "5000", None),
        ("", "log.retention.ms", SET, "6000", "5000", "6000"),
        ("1", "log.retention.ms", DELETE, None, "6000", "6000"),
        ("", "log.retention.ms", DELETE, "", None, None),
        ("1", "log.cleanup.policy", APPEND, "compact", "delete,compact", None),
        ("1", "log.cleanup.policy", SUBTRACT, "delete", "compact", None),
        ("1", "log.cleanup.policy", DELETE, None, "delete", None),
        ("1", "message.max.bytes", SET, "999999", "999999", None),
        ("1", "message.max.bytes", DELETE, "", "1048588", None),
        ("", "log.cleaner.min.cleanable.ratio", SET, "0.0001", "1.0E-4", "0.0001"),
        ("", "log.cleaner.min.cleanable.ratio", DELETE, "", "0.5", None),
        ("1", "num.io.threads", SET, "4", "4", None),
        ("1", "num.io.threads", DELETE, "", "2", None),
    ):
        said.append(broker.ask(change((BROKER, where, [(key, operation, text)])), 1))
        until(broker, describe((BROKER, "", key)), is_value(of_all))
        said.append(until(broker, describe((BROKER, "1", key)), is_value(own)))
        said.append(told(broker, describe((BROKER, "", key)), 4))
    return said


def keys_that_nobody_knows_are_kept_secret(broker: Broker) -> list[object]:
    said: list[object] = []
    for key in ("custom.key", "listener.name.plaintext.ssl.keystore.password"):
        said.append(broker.ask(change((BROKER, "1", [(key, SET, "5")])), 1))
        said.append(
            until(broker, describe((BROKER, "1", key)), lambda a: bool(a.results[0].configs))
        )
        said.append(broker.ask(change((BROKER, "1", [(key, DELETE, "5")])), 1))
        said.append(until(broker, describe((BROKER, "1", key)), lambda a: not a.results[0].configs))
    return said


def changes_of_brokers_that_cannot_be(broker: Broker) -> list[object]:
    said = []
    for where, key, operation, value in (
        ("1", "log.retention.hours", SET, "5"),
        ("1", "node.id", SET, "5"),
        ("1", "custom.key", APPEND, "5"),
        ("1", "log.retention.ms", APPEND, "5"),
        ("1", "log.retention.ms", SUBTRACT, "5"),
        ("1", "log.retention.ms", 9, "5"),
        ("1", "log.retention.ms", SET, None),
        ("1", "ssl.keystore.location", SET, "/x"),
        ("1", "ssl.truststore.password", SET, "x"),
        ("", "listener.name.plaintext.ssl.keystore.location", SET, "/x"),
        ("", "listener.name.plaintext.max.connections", SET, "x"),
        ("1", "num.io.threads", SET, "0"),
        ("1", "num.io.threads", SET, "9"),
        ("1", "num.io.threads", SET, "x"),
        ("1", "num.replica.fetchers", SET, "3"),
        ("1", "background.threads", SET, "4"),
        ("1", "num.recovery.threads.per.data.dir", SET, "5"),
        ("1", "log.cleaner.threads", SET, "9"),
        ("1", "log.cleaner.threads", SET, "0"),
        ("", "listeners", SET, "PLAINTEXT://:1"),
        ("", "ssl.protocol", SET, "x"),
        ("1", "advertised.listeners", SET, "PLAINTEXT://:1"),
        ("2", "log.retention.ms", SET, "5"),
        ("x", "log.retention.ms", SET, "5"),
        ("-1", "log.retention.ms", SET, "5"),
        ("1", "log.retention.ms", SET, "x"),
        ("1", "log.retention.ms", SET, "0"),
        ("", "message.max.bytes", SET, "-1"),
        ("", "compression.type", SET, "brotli"),
        ("", "min.insync.replicas", DELETE, ""),
        ("1", "min.insync.replicas", SET, "1"),
        ("1", "min.insync.replicas", DELETE, "1"),
        ("1", "leader.replication.throttled.rate", SET, "x"),
        ("1", "leader.replication.throttled.rate", SET, "-1"),
        ("", "unclean.leader.election.enable", SET, "maybe"),
        ("1", "max.connections.per.ip", SET, "0"),
        ("1", "producer.id.expiration.ms", SET, "-1"),
        ("1", "log.segment.bytes", SET, "1"),
        ("1", "cordoned.log.dirs", SET, "/no/such,/nor/this"),
        ("", "group.consumer.assignment.interval.ms", SET, "15001"),
        ("1", "log.local.retention.ms", SET, "-1"),
        ("", "log.local.retention.ms", SET, "604800001"),
        ("1", "log.local.retention.bytes", SET, "5"),
        ("1", "remote.log.reader.threads", SET, "100"),
        ("1", "sasl.kerberos.principal.to.local.rules", SET, "a,,b"),
    ):
        request = change((BROKER, where, [(key, operation, value)]), validate_only=True)
        said.append(broker.ask(request, 1))
    return said


def configs_of_client_metrics_change(broker: Broker) -> list[object]:
    said: list[object] = []
    for name, key, operation, value in (
        ("m", "interval.ms", SET, "5000"),
        ("m", "interval.ms", SET, "5"),
        ("m", "interval.ms", SET, "3600001"),
        ("m", "interval.ms", SET, "x"),
        ("m", "foo", SET, "5"),
        ("", "interval.ms", SET, "5000"),
        ("m", "match", SET, "foo"),
        ("m", "match", SET, "client_id=("),
        ("m", "match", SET, "client_id="),
        ("m", "match", SET, "client_id=a=b"),
        ("m", "match", SET, "zz=.*"),
        ("m", "match", SET, "client_id=.*,client_software_name = x"),
        ("m", "metrics", SET, "*"),
        ("m", "metrics", APPEND, "org.a"),
        ("m", "metrics", SET, "a,,b"),
        ("m", "metrics", SET, ""),
    ):
        said.append(broker.ask(change((METRICS, name, [(key, operation, value)])), 1))
    said.append(until(broker, describe((METRICS, "m", "interval.ms")), is_value("5000")))
    said.append(
        until(
            broker,
            describe((METRICS, "m", "metrics")),
            lambda a: a.results[0].configs[0].config_source == 7,
        )
    )
    said.append(told(broker, describe((METRICS, "m")), 4))
    said.append(
        broker.ask(
            change((METRICS, "m", [(k, DELETE, "") for k in ("interval.ms", "match", "metrics")])),
            1,
        )
    )
    said.append(until(broker, describe((METRICS, "m", "interval.ms")), is_value("300000")))
    return said


def configs_of_groups_change(broker: Broker) -> list[object]:
    said: list[object] = []
    for name, key, value in (
        ("g", "consumer.session.timeout.ms", "50000"),
        ("g", "consumer.session.timeout.ms", "5"),
        ("g", "consumer.session.timeout.ms", "60001"),
        ("g", "consumer.session.timeout.ms", "0"),
        ("g", "foo", "5"),
        ("", "consumer.session.timeout.ms", "5"),
        ("g", "share.auto.offset.reset", "foo"),
        ("g", "share.auto.offset.reset", "earliest"),
        ("g", "share.isolation.level", "read_some"),
        ("g", "consumer.heartbeat.interval.ms", "60000"),
        ("g", "consumer.heartbeat.interval.ms", "1"),
        ("g", "consumer.assignment.interval.ms", "15001"),
        ("g", "share.record.lock.duration.ms", "60001"),
        ("g", "share.delivery.count.limit", "11"),
        ("g", "share.partition.max.record.locks", "9999"),
        ("g", "streams.num.standby.replicas", "3"),
        ("g", "streams.num.standby.replicas", "1"),
        ("g", "streams.session.timeout.ms", "44999"),
    ):
        said.append(broker.ask(change((GROUP, name, [(key, SET, value)])), 1))
    said.append(
        until(broker, describe((GROUP, "g", "streams.num.standby.replicas")), is_value("1"))
    )
    said.append(told(broker, describe((GROUP, "g")), 4))
    return said


def levels_of_loggers_change(broker: Broker) -> list[object]:
    """Of the root, which all have; what it had before, it has after."""
    root = describe((LOGGER, "1", "root", "no.such"))
    before = broker.message(root, 4)
    assert isinstance(before, DescribeConfigsResponse)
    was = before.results[0].configs[0].value
    said: list[object] = []
    for name, key, operation, value in (
        ("1", "root", SET, "FATAL"),
        ("1", "root", APPEND, "INFO"),
        ("1", "root", SUBTRACT, "INFO"),
        ("1", "root", 9, "INFO"),
        ("1", "root", DELETE, ""),
        ("1", "root", SET, "info"),
        ("1", "root", SET, None),
        ("1", "no.such", SET, "INFO"),
        ("1", "no.such", DELETE, ""),
        ("1", "", SET, "INFO"),
        ("", "root", SET, "INFO"),
        ("x", "root", SET, "INFO"),
        ("2", "root", SET, "INFO"),
    ):
        said.append(broker.ask(change((LOGGER, name, [(key, operation, value)])), 1))
        said.append(told(broker, root, 4))
    both: list[tuple[str, int, str | None]] = [("root", SET, "ERROR"), ("no.such", SET, "INFO")]
    said.append(broker.ask(change((LOGGER, "1", both)), 1))
    said.append(broker.ask(change((LOGGER, "1", [both[0]]), validate_only=True), 1))
    said.append(broker.ask(change((LOGGER, "1", [both[0], both[0]])), 1))
    said.append(broker.ask(change((LOGGER, "1", []), (LOGGER, "1", [])), 1))
    said.append(broker.ask(change((LOGGER, "1", []), (TOPIC, "no-such", []), (LOGGER, "2", [])), 1))
    said.append(told(broker, root, 4))
    said.append(broker.ask(change((LOGGER, "1", [("root", SET, was)])), 1))
    return said


def resources_with_configs_are_listed(broker: Broker) -> list[object]:
    name, _ = broker.topic("listed")
    said: list[object] = []
    for kind, key, value in (
        (GROUP, "consumer.session.timeout.ms", "50000"),
        (METRICS, "interval.ms", "5000"),
    ):
        said.append(broker.ask(change((kind, name, [(key, SET, value)])), 1))
        said.append(until(broker, describe((kind, name, key)), is_value(value)))
    for kinds in ((), (TOPIC,), (BROKER,), (LOGGER,), (METRICS,), (GROUP,), (BROKER, GROUP, GROUP)):
        answer: Any = broker.ask(ListConfigResourcesRequest(resource_types=kinds), 1)
        # The brokers have other topics and groups, too.
        found = [each for each in answer["config_resources"] if each["resource_type"] != TOPIC]
        said.append([each for each in found if each["resource_name"] in ("1", "listed")])
        said.append(
            [each for each in answer["config_resources"] if each["resource_name"] == "listed"]
        )
    said += [
        broker.ask(ListConfigResourcesRequest(resource_types=kinds), 1)
        for kinds in ((0,), (3,), (TOPIC, 99), (1,))
    ]
    for kind, key in ((GROUP, "consumer.session.timeout.ms"), (METRICS, "interval.ms")):
        said.append(broker.ask(change((kind, name, [(key, DELETE, "")])), 1))
    return said


def configs_are_replaced(broker: Broker) -> list[object]:
    name, _ = broker.topic("replaced", {"retention.ms": "1000", "segment.ms": "7"})
    said: list[object] = []
    for version in range(3):
        said.append(broker.ask(replace((TOPIC, name, {"retention.ms": f"{version}"})), version))
        said.append(until(broker, describe((TOPIC, name, "retention.ms")), is_value(f"{version}")))
    said.append(told(broker, describe((TOPIC, name, "segment.ms")), 4))
    wrong: list[tuple[int, str, dict[str, str | None]]] = [
        (TOPIC, name, {"no.such": "1"}),
        (TOPIC, name, {"retention.ms": None, "segment.ms": None}),
        (TOPIC, name, {"retention.ms": "x"}),
        (TOPIC, "no-such", {"retention.ms": "1"}),
        (TOPIC, "", {}),
        (BROKER, "1", {"node.id": "7"}),
        (BROKER, "7", {}),
        (BROKER, "", {}),
        (BROKER, "", {"min.insync.replicas": "1", "num.io.threads": "x"}),
        (BROKER, "1", {"log.retention.ms": "x"}),
        (LOGGER, "1", {"root": "INFO"}),
        (METRICS, "", {}),
        (GROUP, "", {}),
        (0, "x", {}),
    ]
    said += [broker.ask(replace(each), 2) for each in wrong]
    kept: dict[str, str | None] = {"retention.ms": "5"}
    said.append(broker.ask(replace((TOPIC, name, kept), validate_only=True), 2))
    said.append(broker.ask(replace((TOPIC, name, {})), 2))
    said.append(until(broker, describe((TOPIC, name, "retention.ms")), is_value("604800000")))
    return said


CONFIG_STORIES = (
    configs_of_a_topic_in_every_version,
    configs_of_the_broker_in_every_version,
    configs_of_groups_and_client_metrics,
    configs_of_what_is_not_there,
    words_of_configs_are_there_when_asked_for,
    configs_of_a_topic_change,
    changes_of_topics_that_cannot_be,
    configs_of_brokers_change,
    keys_that_nobody_knows_are_kept_secret,
    changes_of_brokers_that_cannot_be,
    configs_of_client_metrics_change,
    configs_of_groups_change,
    levels_of_loggers_change,
    resources_with_configs_are_listed,
    configs_are_replaced,
)
