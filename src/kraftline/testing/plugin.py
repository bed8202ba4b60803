"""Fixtures for pytest: a Kafka node that is there in some hundredths of a second.

- `kafka_node`: a node for the whole session, in a thread of its own; `kafka_bootstrap` is its
  address. Each process of pytest-xdist has its own: free ports, and a temporary directory.
- `kafka_topic`: the name of a new topic with one partition, for one test.
- `kafka_settings`: override it, for the session, to start the node with other settings.

Nothing is imported or started before a test asks for it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kraftline.node.thread import NodeThread

# What a topic's name may be made of, and how long it may be without what makes it unique.
_ODD = re.compile(r"[^a-zA-Z0-9-]+")
_LONGEST = 200


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, object]:
    """Settings of the session's node, by Kafka's names, beside those of a test's node."""
    return {}


@pytest.fixture(scope="session")
def kafka_node(kafka_settings: Mapping[str, object]) -> Iterator[NodeThread]:
    """A node that serves until the session ends."""
    import kraftline

    with kraftline.Node(kafka_settings) as node:
        yield node


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka_node: NodeThread) -> str:
    """What clients take for `bootstrap.servers`."""
    return kafka_node.bootstrap


@pytest.fixture
def kafka_topic(kafka_node: NodeThread, request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test has; it tells which test made it."""
    name = _ODD.sub("-", request.node.name).strip("-")[:_LONGEST]
    topic = f"{name}-{secrets.token_hex(4)}"
    kafka_node.create_topic(topic)
    return topic
