"""What Kafka makes of a config's text, and what it says when it refuses one: ours says the same."""

from __future__ import annotations

import json

import pytest

from kraftline.config.key import Key, Type
from kraftline.config.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kraftline.config.values import BadConfig, parse
from tests.oracle.java import run

TEXTS = (
    *("", " 7 ", "-1", "0", "1", "2", "10", "1000", "999999", "0.25", "1e2", "+3", "1_000"),
    *(
        "true",
        "FALSE",
        "yes",
        "a",
        "a,b",
        "a , b",
        "a,a",
        "broker",
        "delete,compact",
        "ZSTD",
        "zstd",
    ),
    *("9223372036854775808", "PLAINTEXT", "plaintext", "LogAppendTime", "upgrade", "none"),
)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "keys"),
    [("broker", BROKER), ("topic", TOPIC), ("group", GROUP), ("client-metrics", CLIENT_METRICS)],
)
def test_values_are_read_and_refused_as_kafka_does(kind: str, keys: dict[str, Key]) -> None:
    asked = [(key, text) for key in keys.values() if _ours_to_judge(key) for text in TEXTS]
    args = [part for key, text in asked for part in (key.name, text)]
    answers = run("ConfigTable", [kind, *args], ours=True).splitlines()
    differences = []
    for (key, text), line in zip(asked, answers, strict=True):
        theirs, ours = json.loads(line), _ours(key, text)
        if key.type is Type.PASSWORD:  # Kafka prints none
            ours, theirs = {"value": "refused" in ours}, {"value": "refused" in theirs}
        if ours != theirs:
            differences.append(f"{key.name} = {text!r}: Kafka {theirs}, we {ours}")
    assert not differences


def _ours_to_judge(key: Key) -> bool:
    """Classes are Java's; addresses of the quorum are read, and refused, where they are used."""
    elsewhere = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    return key.type is not Type.CLASS and key.name not in elsewhere


def _ours(key: Key, text: str) -> dict[str, object]:
    try:
        return {"value": parse(key, text)}
    except BadConfig as problem:
        return {"refused": str(problem)}
