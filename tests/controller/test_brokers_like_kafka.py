"""Brokers that exist only in a test register, beat, leave and die: ours answers and writes what a
real controller did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.telling import brokers_by_us, hold_equal, read
from tests.fixtures.controller.make import FILE, STORIES, by_kafka


@pytest.mark.parametrize("name", STORIES)
def test_decisions_are_kafkas(name: str, tmp_path: Path) -> None:
    story, session_ms = STORIES[name]
    # Long enough for a busy machine, and no longer.
    ours = brokers_by_us(tmp_path / "data", story, 800 if name == "silence" else session_ms)
    hold_equal(ours, read(FILE)[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["every rule", "silence"])
def test_kafka_still_decides_so(name: str, tmp_path: Path) -> None:
    hold_equal(by_kafka(name, tmp_path / "kafka"), read(FILE)[name])
