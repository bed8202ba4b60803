"""Both nodes, once for all tests of this package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security import secured
from tests.security.secured import Secured


@pytest.fixture(scope="package")
def kafka_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured.kafka(tmp_path_factory.mktemp("kafka-secured")) as node:
        yield node


@pytest.fixture(scope="package")
def ours_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured.ours(tmp_path_factory.mktemp("ours-secured") / "data") as node:
        yield node
