"""The parser of Kafka's dump text, held against Kafka's own record classes on every fixture."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from tests.oracle.dump import parse_entries, parse_log
from tests.oracle.fixture import FIXTURES
from tests.oracle.lines import Json

SAYS = sorted(FIXTURES.glob("*/kafka-says"))


def text_of(path: Path) -> str:
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def dumped(says: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Paths below kafka-says without `.dump.txt`, of files with one of these suffixes."""
    found = {
        path.with_name(path.name.partition(".dump.txt")[0]) for path in says.rglob("*.dump.txt*")
    }
    return sorted(path for path in found if path.suffix in suffixes)


@pytest.mark.parametrize("says", SAYS, ids=lambda says: says.parent.name)
def test_dump_has_every_batch_and_record_that_kafka_reads(says: Path) -> None:
    for path in dumped(says, (".log", ".checkpoint")):
        records = [
            json.loads(line)
            for line in text_of(path.with_name(path.name + ".records.jsonl")).splitlines()
        ]
        batches = parse_log(text_of(path.with_name(path.name + ".dump.txt")))
        positions = sorted({each["position"] for each in records if "position" in each})
        assert [batch["position"] for batch in batches] == positions, path
        inside = [record for batch in batches for record in as_list(batch["records"])]
        expected = [each for each in records if "offset" in each]
        assert [as_dict(each)["offset"] for each in inside] == [e["offset"] for e in expected], path


def test_raw_keys_and_payloads_come_back_as_they_were() -> None:
    for name in ("codec-none-0", "odd-0"):
        for path in sorted(FIXTURES.glob(f"topics_4_3/kafka-says/*/{name}/*.log.records.jsonl*")):
            base = path.with_name(path.name.partition(".records")[0])
            lines = text_of(base.with_name(base.name + ".records.jsonl")).splitlines()
            records = [json.loads(line) for line in lines]
            batches = parse_log(text_of(base.with_name(base.name + ".dump.txt")))
            inside = [as_dict(r) for batch in batches for r in as_list(batch["records"])]
            for record, dump in zip(records, inside, strict=True):
                if record["isControl"]:
                    continue
                for field, shown in (("key", "key"), ("value", "payload")):
                    # The tool prints neither a null key nor a null value.
                    if record[field] is not None:
                        assert dump[shown] == base64.b64decode(record[field]).decode()


def test_index_entries_are_numbers() -> None:
    for says in SAYS:
        for path in dumped(says, (".index", ".timeindex", ".txnindex", ".snapshot")):
            for entry in parse_entries(text_of(path.with_name(path.name + ".dump.txt"))):
                numbers = [
                    value for name, value in entry.items() if name != "currentTxnFirstOffset"
                ]
                assert all(isinstance(value, int) for value in numbers), (path, entry)


def as_list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def as_dict(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value
