"""The broker that the clients talk to: ours, and real Kafka with the same tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.clients.adapters import CLIENTS, Client
from tests.node.running import OurNode, RealKafka

_PROPERTIES = {"message.max.bytes": "20000000", "log.retention.check.interval.ms": "300000"}
_numbers = itertools.count()


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp(f"clients-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(root, _PROPERTIES) as node:
        yield node.bootstrap


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    return CLIENTS[request.param](bootstrap)


@pytest.fixture
def new_name() -> Callable[[], str]:
    """A topic's name that no other test has."""
    return lambda: f"topic-{next(_numbers)}"
