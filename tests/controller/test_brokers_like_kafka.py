"""Brokers that exist only in a test register, beat, leave and die: ours answers and writes what a
real controller did."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.controller.telling import SHORT_MS, brokers_by_us, hold_equal, read
from tests.fixtures.controller.make import FILE, STORIES, by_kafka


@pytest.mark.parametrize("name", STORIES)
def test_decisions_are_kafkas(name: str, tmp_path: Path) -> None:
    telling = STORIES[name]
    if telling.session_ms == SHORT_MS:
        # Long enough for a busy machine, and no longer.
        telling = msgspec.structs.replace(telling, session_ms=800)
    hold_equal(brokers_by_us(tmp_path / "data", telling), read(FILE)[name])


@pytest.mark.soak
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["every rule", pytest.param("silence", marks=pytest.mark.soak)])
def test_kafka_still_decides_so(name: str, tmp_path: Path) -> None:
    hold_equal(by_kafka(name, tmp_path / "kafka"), read(FILE)[name])
