"""Kafka's cleaner for all tests here: one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.cleaner.kafkas_cleaner import KafkasCleaner


@pytest.fixture(scope="session")
def kafkas() -> Iterator[KafkasCleaner]:
    with KafkasCleaner() as cleaner:
        yield cleaner
