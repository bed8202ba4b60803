"""The files of real log directories under tests/fixtures, and what Kafka's tools say of them."""

from __future__ import annotations

import gzip
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def data_files(*patterns: str) -> list[Path]:
    """Files of real log directories by name, in a stable order."""
    found = {path for pattern in patterns for path in FIXTURES.glob(f"*/data/**/{pattern}")}
    return sorted(path for path in found if path.is_file())


def short_name(path: Path) -> str:
    return str(path.relative_to(FIXTURES))


def kafka_says(path: Path, suffix: str) -> str | None:
    """The text beside a fixture file (`.dump.txt`, `.records.jsonl`), or None."""
    fixture = FIXTURES / path.relative_to(FIXTURES).parts[0]
    said = fixture / "kafka-says" / path.relative_to(fixture / "data")
    said = said.with_name(said.name + suffix)
    if said.exists():
        return said.read_text()
    packed = said.with_name(said.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else None


def dump_lines(path: Path) -> list[str] | None:
    """What DumpLogSegments printed, without its first line; None where it fell over the file."""
    text = kafka_says(path, ".dump.txt")
    if text is None or "Exception in thread" in text:
        return None
    return text.splitlines()[1:]


def log_directories() -> list[Path]:
    return sorted(path.parent for path in FIXTURES.glob("*/data/**/meta.properties"))


def partition_directories() -> list[Path]:
    return sorted({path.parent for path in data_files("*.log") if path.name[:20].isdigit()})
