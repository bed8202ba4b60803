"""The committed fixtures, found and read the same way by every test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"


def logs() -> list[Path]:
    """Every segment and snapshot of every fixture that is a copy of a log directory."""
    found = [*FIXTURES.glob("*/data/**/*.log"), *FIXTURES.glob("*/data/**/*.checkpoint")]
    return sorted(found)


def name_of(path: Path) -> str:
    """A short name for test ids."""
    return str(path.relative_to(FIXTURES)).replace("/data/", "/")


def says(path: Path, kind: str) -> str | None:
    """What Kafka says of a file: `records.jsonl` or `dump.txt`; None if it was not asked."""
    fixture = FIXTURES / path.relative_to(FIXTURES).parts[0]
    beside = fixture / "kafka-says" / path.relative_to(fixture / "data")
    plain = beside.with_name(f"{beside.name}.{kind}")
    packed = plain.with_name(f"{plain.name}.gz")
    if plain.exists():
        return plain.read_text()
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode()
    return None


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, as Kafka's FileRecords reads them."""
    text = says(path, "records.jsonl")
    assert text is not None, path
    for line in text.splitlines():
        row = json.loads(line)
        if "offset" in row:  # a batch without records is a line of its own
            yield row
