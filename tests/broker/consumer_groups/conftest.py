from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.consumer_groups.deciding import GroupDecisions


@pytest.fixture(scope="package")
def decisions() -> Iterator[GroupDecisions]:
    """Kafka's classes of the group coordinator."""
    with GroupDecisions() as program:
        yield program
