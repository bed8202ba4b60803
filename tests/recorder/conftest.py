"""Those who answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.answers import BrokerAnswers

PAGE = "max.request.partition.size.limit"


@pytest.fixture(scope="session")
def kafka_answers() -> Iterator[BrokerAnswers]:
    """Kafka's request handler over images that tests load."""
    with BrokerAnswers({PAGE: "250"}) as answers:
        yield answers
