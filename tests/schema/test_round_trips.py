"""Any message that a version can hold survives being written and read, unknown tags included."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftline.schema.codec import decode, encode
from kraftline.schema.jsonform import from_json, json_reader, to_json
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader
from tests.effort import rounds
from tests.schema.instances import Random, messages
from tests.schema.messages import versioned

RECORDS = [(cls, version) for cls, version in versioned() if ".api." not in cls.__module__]
EVERYTHING = versioned()


def named(case: object) -> str:
    return case.__name__ if isinstance(case, type) else str(case)


@pytest.mark.parametrize(("cls", "version"), RECORDS, ids=named)
def test_any_record_comes_back(cls: type[Message], version: int) -> None:
    @settings(
        max_examples=rounds(8),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(messages(cls, version))
        encoded = encode(message, version)
        assert decode(cls, encoded, version) == message
        assert encode(decode(cls, encoded, version), version) == encoded

    check()


@pytest.mark.parametrize(("cls", "version"), EVERYTHING, ids=named)
def test_json_form_comes_back(cls: type[Message], version: int) -> None:
    rng = Random((cls.__name__, version))
    for _ in range(3):
        message = rng.message(cls, version)
        encoded = encode(message, version)
        form = to_json(message, version)
        assert from_json(cls, json.loads(json.dumps(form)), version) == message
        r = Reader(encoded)
        assert json.dumps(json_reader(cls, version)(r)) == json.dumps(form)
        assert r.pos == len(encoded)
