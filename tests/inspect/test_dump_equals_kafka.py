"""For every fixture: a dump says, record by record, what Kafka's own tools say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftline.errors import NotKafka
from kraftline.inspect.dump import json_lines, read_all
from kraftline.inspect.dump.rows import Selection, json_line
from kraftline.inspect.dump.sources import Decoder, Wanted, find_sources
from kraftline.storage.segment import Damage
from tests import fixture_files
from tests.oracle.dump import parse_log

# Of its batch, every record has these under the same name.
SAME = (
    ("position", "position"),
    ("offset", "offset"),
    ("timestamp", "timestamp"),
    ("timestampType", "timestampType"),
    ("partitionLeaderEpoch", "leaderEpoch"),
    ("codec", "codec"),
    ("producerId", "producerId"),
    ("producerEpoch", "producerEpoch"),
    ("sequence", "sequence"),
    ("isTransactional", "isTransactional"),
    ("isControl", "isControl"),
    ("key", "key"),
    ("value", "value"),
)


def refuse(damage: Damage) -> None:
    raise damage.error()


def raise_it(error: NotKafka) -> None:
    raise error


def dump(path: Path) -> list[dict[str, Any]]:
    sources = list(find_sources([str(path)], Wanted(), raise_it))
    text = b"".join(map(bytes, json_lines(sources, Selection(), refuse, raise_it)))
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("path", fixture_files.logs(), ids=fixture_files.name_of)
def test_records_are_those_that_kafka_reads(path: Path) -> None:
    if path.stat().st_size == 0:
        assert dump(path) == []  # Kafka is not asked about empty files
        return
    if fixture_files.says(path, "records.jsonl") is None:
        pytest.fail("Kafka was not asked about this file")
    rows = dump(path)
    expected = list(fixture_files.records(path))
    assert [[row[ours] for _, ours in SAME] for row in rows] == [
        [row[theirs] for theirs, _ in SAME] for row in expected
    ]
    assert [[[h["key"], h["value"]] for h in row["headers"]] for row in rows] == [
        row["headers"] for row in expected
    ]
    assert {row["file"] for row in rows} <= {str(path)}
    assert not [row for row in rows if "problem" in row]


def is_typed(path: Path) -> bool:
    (source,) = find_sources([str(path)], Wanted(), raise_it)
    return source.decoder is not Decoder.NONE


TYPED = [p for p in fixture_files.logs() if fixture_files.says(p, "dump.txt") and is_typed(p)]


@pytest.mark.parametrize("path", TYPED, ids=fixture_files.name_of)
def test_payloads_are_those_that_kafka_prints(path: Path) -> None:
    text = fixture_files.says(path, "dump.txt")
    assert text is not None
    batches: Any = parse_log(text)
    expected = {record["offset"]: record for batch in batches for record in batch["records"]}
    rows = dump(path)
    assert [row["offset"] for row in rows] == list(expected)
    for row in rows:
        theirs = expected[row["offset"]]
        if row["isControl"]:
            assert same_control(row["payload"], theirs), (row, theirs)
            continue
        assert row["payload"] == (None if theirs["payload"] == "<DELETE>" else theirs["payload"])
        if "keyPayload" in row:
            assert row["keyPayload"] == theirs["key"]


def same_control(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Kafka prints markers as text and the rest as JSON, under names of its own."""
    if "controlType" in theirs:  # all that older tools say
        return bool(theirs["controlType"].startswith(f"{ours['type']}("))
    if theirs["control"] == "endTxnMarker":
        marker = f"{ours['type']} coordinatorEpoch: {ours['data']['coordinatorEpoch']}"
        return bool(marker == theirs["payload"])
    name = ours["type"].replace("_", "").lower()
    return bool(name == theirs["control"].lower() and ours["data"] == theirs["payload"])


@pytest.mark.parametrize(
    "path", [p for p in TYPED if "__cluster_metadata" in str(p)], ids=fixture_files.name_of
)
def test_both_ways_to_json_lines_agree(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's short cut for large files and the way through rows write the same."""
    monkeypatch.setattr("kraftline.inspect.dump.WORTH_A_PROGRAM", 0)
    sources = list(find_sources([str(path)], Wanted(), raise_it))
    told = refuse, raise_it
    quick = b"".join(map(bytes, json_lines(sources, Selection(), *told))).splitlines()
    slow = [json_line(row) for row in read_all(sources, Selection(), *told)]
    assert list(map(json.loads, quick)) == list(map(json.loads, slow))
