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
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
def kafka_node(
    kafka_settings: Mapping[str, object], pytestconfig: pytest.Config
) -> Iterator[NodeThread]:
    """A node that serves until the session ends."""
    with ExitStack() as stack:
        with _plain_imports(pytestconfig):
            import kraftline

            node = stack.enter_context(kraftline.Node(kafka_settings))
        yield node


@contextmanager
def _plain_imports(config: pytest.Config) -> Iterator[None]:
    """Without pytest's own way to import: it rewrites the assertions of every package that has a
    plugin, which takes as long as all the rest, and a node has no tests in it."""
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    if hook not in sys.meta_path:
        yield
        return
    at = sys.meta_path.index(hook)
    del sys.meta_path[at]
    try:
        yield
    finally:
        sys.meta_path.insert(at, hook)


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
