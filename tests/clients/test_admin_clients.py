"""What administrators do with Python's clients, against our node and against real Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.clients.admins import ADMINS, Admin, Refused
from tests.oracle.driver import wait_until

NewName = Callable[[], str]


@pytest.fixture(params=ADMINS)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Admin:
    return ADMINS[request.param](bootstrap)


def test_configs_are_told_and_changed(admin: Admin, bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, configs={"retention.ms": "100000"})
    before = admin.configs(name)
    assert (before["retention.ms"], before["segment.ms"]) == ("100000", "604800000")
    admin.set_configs(name, {"retention.ms": "200000", "cleanup.policy": "compact,delete"})
    wait_until(lambda: admin.configs(name)["retention.ms"] == "200000", "the change to be seen")
    assert admin.configs(name)["cleanup.policy"] == "compact,delete"


def test_configs_that_cannot_be_are_refused(
    admin: Admin, bootstrap: str, new_name: NewName
) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name)
    with pytest.raises(Refused, match="Not a number of type LONG"):
        admin.set_configs(name, {"retention.ms": "soon"})
    assert admin.configs(name)["retention.ms"] == "604800000"


def test_configs_of_the_broker_are_told(admin: Admin) -> None:
    found = admin.broker_configs()
    assert (found["node.id"], found["message.max.bytes"]) == ("1", "20000000")
    assert found["ssl.keystore.password"] is None


def test_partitions_are_added(admin: Admin, bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    client = Confluent(bootstrap)
    client.create_topic(name)
    admin.add_partitions(name, 3)
    wait_until(lambda: admin.partitions(name) == 3, "the new partitions")
    assert client.produce(name, [Sent(None, b"v")], partition=2) == [0]
    with pytest.raises(Refused):
        admin.add_partitions(name, 2)
