"""Batches that Kafka wrote, and a way to run a test with either kernel."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kraftline import kernels
from kraftline.records import arrow, batch, chunks, framing, runs
from kraftline.records.kernel import COMPILED, NAME, active
from kraftline.records.record import Record

FIXTURE = Path(__file__).parent.parent / "fixtures" / "batches"

MANIFEST: dict[str, dict[str, Any]] = json.loads(
    gzip.decompress((FIXTURE / "manifest.json.gz").read_bytes())
)


def written_by_kafka(name: str) -> bytes:
    return (FIXTURE / "data" / f"{name}.log").read_bytes()


def kafka_says(name: str) -> list[dict[str, Any]]:
    path = FIXTURE / "kafka-says" / f"{name}.log.records.jsonl"
    packed = path.with_name(path.name + ".gz")
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def unpack(data: str | None) -> bytes | None:
    return None if data is None else base64.b64decode(data)


def record_of(spec: dict[str, Any]) -> Record:
    """A record of the manifest or of what Kafka says."""
    headers = tuple((key, unpack(value)) for key, value in spec.get("headers") or ())
    return Record(
        spec["offset"],
        spec["timestamp"],
        unpack(spec["key"]),
        unpack(spec["value"]),
        headers,
        spec.get("sequence", -1),
    )


@pytest.fixture(params=["compiled", "interpreted"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Runs the test once with each kernel."""
    if request.param == "compiled":
        if not COMPILED:
            pytest.skip("no compiled kernel here")
        return active
    module = kernels.interpreted(NAME)
    for user in (batch, framing, runs, arrow, chunks):
        monkeypatch.setattr(user, "kernel", module)
    return module
