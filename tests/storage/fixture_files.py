"""The files of real log directories: by name, by directory, and what Kafka printed of them."""

from __future__ import annotations

from pathlib import Path

from tests.fixture_files import FIXTURES, says


def data_files(*patterns: str) -> list[Path]:
    """Files of the fixtures by name, in a stable order."""
    found = {path for pattern in patterns for path in FIXTURES.glob(f"*/data/**/{pattern}")}
    return sorted(path for path in found if path.is_file())


def dump_lines(path: Path) -> list[str] | None:
    """What DumpLogSegments printed, without its first line; None where it fell over the file."""
    text = says(path, "dump.txt")
    if text is None or "Exception in thread" in text:
        return None
    return text.splitlines()[1:]


def log_directories() -> list[Path]:
    return [path.parent for path in data_files("meta.properties")]


def partition_directories() -> list[Path]:
    return sorted({path.parent for path in data_files("*.log") if path.name[:20].isdigit()})
