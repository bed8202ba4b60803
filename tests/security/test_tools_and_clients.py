"""Kafka's own tools for users, quotas, ACLs and tokens, and real clients that log in: the same
against real Kafka and against us."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.admin import KafkaAdminClient

from tests.oracle.driver import wait_until
from tests.oracle.tools import KafkaTools
from tests.security.access import acl, set_acls
from tests.security.secured import PASSWORDS, Secured
from tests.security.test_sasl_like_kafka import set_password

pytestmark = pytest.mark.oracle
CONFIGS = "kafka.admin.ConfigCommand"
TOPIC, GROUP, READ, WRITE = 2, 3, 3, 4


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools() as tools:
        yield tools


@pytest.fixture(params=["kafka", "ours"])
def node(request: pytest.FixtureRequest) -> Secured:
    found: Secured = request.getfixturevalue(f"{request.param}_secured")
    return found


@pytest.fixture
def tool(tools: KafkaTools, node: Secured) -> Callable[..., str]:
    def call(name: str, *arguments: str, bootstrap: str = node.bootstrap) -> str:
        return tools.call(name, "--bootstrap-server", bootstrap, *arguments)

    return call


def test_users_get_passwords_and_quotas(tool: Callable[..., str]) -> None:
    frank = ("--entity-type", "users", "--entity-name", "frank")
    done = "Completed updating config for user frank.\n"
    for change in (
        "SCRAM-SHA-256=[iterations=8192,password=frank's]",
        "SCRAM-SHA-512=[password=frank's]",
    ):
        assert tool(CONFIGS, "--alter", *frank, "--add-config", change) == done
    assert tool(CONFIGS, "--alter", *frank, "--add-config", "consumer_byte_rate=2000000") == done
    said = "SCRAM credential configs for user-principal 'frank' are "
    credentials = f"{said}SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n"
    quotas = "Quota configs for user-principal 'frank' are consumer_byte_rate=2000000.0\n"
    wait_until(lambda: _same(tool(CONFIGS, "--describe", *frank), quotas + credentials), "quotas")
    for gone in ("SCRAM-SHA-512", "consumer_byte_rate"):
        assert tool(CONFIGS, "--alter", *frank, "--delete-config", gone) == done
    left = f"{said}SCRAM-SHA-256=iterations=8192\n"
    wait_until(lambda: tool(CONFIGS, "--describe", *frank) == left, "what is left")
    assert tool(CONFIGS, "--alter", *frank, "--delete-config", "SCRAM-SHA-256") == done


def test_clients_get_quotas(tool: Callable[..., str]) -> None:
    both = ("--entity-type", "users", "--entity-default", "--entity-type", "clients")
    someone = (*both, "--entity-name", "someone")
    change = ("--add-config", "producer_byte_rate=1048576,request_percentage=250.5")
    tool(CONFIGS, "--alter", *someone, *change)
    wanted = (
        "Quota configs for the default user-principal, client-id 'someone' are "
        "request_percentage=250.5, producer_byte_rate=1048576.0\n"
    )
    wait_until(lambda: _same(tool(CONFIGS, "--describe", *someone), wanted), wanted)
    tool(
        *(CONFIGS, "--alter", *someone),
        *("--delete-config", "producer_byte_rate,request_percentage"),
    )
    wait_until(lambda: tool(CONFIGS, "--describe", *someone) == "", "nothing")


def _same(said: str, wanted: str) -> bool:
    """With what is in a list in any order."""
    return sorted(re.split(r", | are |\n", said)) == sorted(re.split(r", | are |\n", wanted))


def test_acls_are_added_listed_and_removed(tool: Callable[..., str], node: Secured) -> None:
    set_acls(node, [])
    acls = "AclCommand"
    alice = ("--allow-principal", "User:alice")
    tool(acls, "--add", *alice, "--producer", "--topic", "orders", "--idempotent")
    tool(
        *(acls, "--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1"),
        *("--operation", "Read", "--topic", "ord", "--resource-pattern-type", "prefixed"),
    )

    def listed(*options: str) -> list[str]:
        return sorted(filter(None, tool(acls, "--list", *options).splitlines()))

    def entry(principal: str, host: str, operation: str, permission: str) -> str:
        who = f"(principal=User:{principal}, host={host}, operation={operation}, "
        return f"\t{who}permissionType={permission})"

    orders = [
        *(entry("alice", "*", each, "ALLOW") for each in ("CREATE", "DESCRIBE", "WRITE")),
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, "
        "patternType=LITERAL)`:",
    ]
    prefixed = [
        entry("bob", "10.0.0.1", "READ", "DENY"),
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=ord, "
        "patternType=PREFIXED)`:",
    ]
    named = ("--topic", "orders")
    wait_until(lambda: listed(*named) == sorted(orders), "ACLs of a topic")
    assert listed(*named, "--resource-pattern-type", "match") == sorted(orders + prefixed)
    assert len(listed()) == len(orders + prefixed) + 2  # and that of the cluster
    tool(acls, "--remove", "--force", *alice, "--operation", "Write", *named)
    wait_until(lambda: len(listed(*named)) == len(orders) - 1, "one less")
    tool(acls, "--remove", "--force", *named, "--resource-pattern-type", "any")
    wait_until(
        lambda: listed(*named, "--resource-pattern-type", "match") == sorted(prefixed), "rest"
    )


def test_tokens_are_made_and_ended(tool: Callable[..., str], node: Secured, tmp_path: Path) -> None:
    file = tmp_path / "alice.properties"
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required "
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={jaas}username="alice" password="{PASSWORDS["alice"]}";\n'
    )

    def tokens(*arguments: str) -> str:
        return tool(
            *("DelegationTokenCommand", "--command-config", str(file), *arguments),
            bootstrap=node.sasl_bootstrap,
        )

    made = tokens(
        "--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob"
    )
    match = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice", made, re.M)
    assert match is not None, made
    owner = ("--describe", "--owner-principal", "User:alice")
    wait_until(lambda: match[1] in tokens(*owner), "the token")
    assert "[User:bob]" in tokens(*owner)
    renewed = tokens("--renew", "--hmac", match[2], "--renew-time-period", "-1")
    assert "Completed renew operation. New expiry date" in renewed
    ended = tokens("--expire", "--hmac", match[2], "--expiry-time-period", "-1")
    assert "Completed expire operation. New expiry date" in ended
    wait_until(lambda: match[1] not in tokens(*owner), "its end")


def _client(node: Secured, mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
        "error_cb": lambda error: None,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_real_clients_log_in_and_do_what_they_may(node: Secured, mechanism: str) -> None:
    name, password = "alice", PASSWORDS["alice"]
    if mechanism != "PLAIN":
        name, password = "grace", "grace's"
        set_password(node, name, password)
    topic, hidden = f"own-{mechanism}", f"hidden-{mechanism}"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for future in admin.create_topics([NewTopic(each, 1, 1) for each in (topic, hidden)]).values():
        future.result(60)
    who = f"User:{name}"
    rights = [(TOPIC, topic, READ), (TOPIC, topic, WRITE), (GROUP, "none", READ)]
    set_acls(node, [acl(*each, principal=who) for each in rights])
    settings = _client(node, mechanism, name, password)
    errors: list[Any] = []
    producer = Producer({**settings, "enable.idempotence": True})

    def delivered(error: Any, message: Any) -> None:
        errors.append(error)

    for number in range(10):
        producer.produce(topic, f"value {number}".encode(), on_delivery=delivered)
    assert producer.flush(60) == 0
    assert errors == [None] * 10
    producer.produce(hidden, b"not for you", on_delivery=delivered)
    producer.flush(60)
    assert errors[-1].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer = Consumer({**settings, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(consumer.consume(10, 1))
        return len(found) >= 10

    wait_until(has_all, "records")
    assert [each.value() for each in found] == [b"value %d" % n for n in range(10)]
    seen = set(AdminClient(settings).list_topics(timeout=60).topics)
    assert topic in seen
    assert hidden not in seen
    consumer.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_clients_in_python_log_in(node: Secured, mechanism: str) -> None:
    if mechanism != "PLAIN":
        set_password(node, "admin", PASSWORDS["admin"])
    settings: dict[str, Any] = {
        "bootstrap_servers": node.sasl_bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORDS["admin"],
    }
    python = KafkaAdminClient(**settings)
    seen = python.list_topics()
    python.close()

    async def asked() -> list[str]:
        client = AIOKafkaAdminClient(**settings)
        await client.start()
        try:
            found: list[str] = await client.list_topics()
            return found
        finally:
            await client.close()

    assert sorted(asyncio.run(asked())) == sorted(seen)


def test_real_clients_with_wrong_passwords_are_sent_away(node: Secured) -> None:
    said: list[Any] = []
    settings: dict[str, Any] = _client(node, "PLAIN", "alice", "wrong")
    client = Producer({**settings, "error_cb": said.append})

    def is_told() -> bool:
        client.poll(0.2)
        return KafkaError._AUTHENTICATION in [each.code() for each in said]

    wait_until(is_told, "an error")
