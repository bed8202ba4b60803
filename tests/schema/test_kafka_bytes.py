"""Real Kafka's own encodings, message by message and version by version, are read and rewritten."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.codec import decode, encode
from kraftline.schema.jsonform import from_json, json_reader, to_json
from kraftline.schema.wire import Reader
from tests.schema.messages import message_classes

DATA = Path(__file__).parent.parent / "fixtures" / "messages" / "data"


@cache
def samples(file: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(DATA / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            sample = json.loads(line)
            found.setdefault(sample["name"], []).append(sample)
    return found


RECORDS = ("records", "unalignedRecords")


def without_records(form: Any) -> Any:
    """Kafka's converter prints any records as empty; we print what is there."""
    if isinstance(form, dict):
        return {
            name: "" if name in RECORDS and isinstance(value, str) else without_records(value)
            for name, value in form.items()
        }
    return [without_records(item) for item in form] if isinstance(form, list) else form


FILES = ("records.jsonl.gz", "apis.jsonl.gz")
NAMES = [(file, name) for file in FILES for name in samples(file)]


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_bytes_of_kafka_come_back_as_they_were(file: str, name: str) -> None:
    cls = message_classes()[name]
    for sample in samples(file)[name]:
        data = bytes.fromhex(sample["hex"])
        assert encode(decode(cls, data, sample["version"]), sample["version"]) == data


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_json_is_what_kafka_prints(file: str, name: str) -> None:
    cls = message_classes()[name]
    for sample in samples(file)[name]:
        data, version = bytes.fromhex(sample["hex"]), sample["version"]
        message = decode(cls, data, version)
        form = to_json(message, version)
        r = Reader(data)
        assert json_reader(cls, version)(r) == form
        assert r.pos == len(data)
        # As text, because the order counts too.
        assert json.dumps(without_records(form)) == json.dumps(sample["json"])
        assert from_json(cls, form, version) == message


def test_every_message_has_samples() -> None:
    with_samples = {name for _, name in NAMES}
    # Defined after Kafka 4.3.1, or in a jar that the samples do not come from.
    assert message_classes().keys() - with_samples == {
        "AbortedTxn",
        "ProducerSnapshot",
        "UnregisterControllerRecord",
    }
