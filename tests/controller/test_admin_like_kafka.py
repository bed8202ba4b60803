"""Partitions move, leaders are elected, brokers unregistered, features and configs changed: ours
answers and writes what a real controller did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.telling import brokers_by_us, hold_equal, read
from tests.fixtures.admin.make import FILE, STORIES, by_kafka


@pytest.mark.parametrize("name", STORIES)
def test_decisions_are_kafkas(name: str, tmp_path: Path) -> None:
    hold_equal(brokers_by_us(tmp_path / "data", STORIES[name]), read(FILE)[name])


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["reassignments", *(pytest.param(n, marks=pytest.mark.soak) for n in list(STORIES)[1:])]
)
@pytest.mark.soak
def test_kafka_still_decides_so(name: str, tmp_path: Path) -> None:
    hold_equal(by_kafka(name, tmp_path / "kafka"), read(FILE)[name])
