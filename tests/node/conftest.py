"""Nodes for tests: in a process of their own, with settings as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.node.running import OurNode

MakeNode = Callable[..., OurNode]


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[MakeNode]:
    """Nodes below this test's directory; whatever still runs at the end is killed."""
    made: list[OurNode] = []

    def make(properties: dict[str, str] | None = None, **more: int) -> OurNode:
        made.append(OurNode(tmp_path / f"node-{len(made) + 1}", properties, **more))
        return made[-1]

    yield make
    for node in made:
        node.kill()


@pytest.fixture
def node(make_node: MakeNode) -> OurNode:
    found = make_node()
    found.start()
    return found
