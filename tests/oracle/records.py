"""What Kafka's own record classes read from segments and snapshots."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.oracle.java import run
from tests.oracle.lines import Json


def write_records_json(files: Sequence[tuple[Path, Path]]) -> None:
    """Read each first file with Kafka's FileRecords, write JSON lines to the second."""
    args = [str(path) for pair in files for path in pair]
    run("RecordsToJson", args, ours=True)


def records_json(path: Path) -> list[dict[str, Json]]:
    """One dict per record (or per batch without records) of a segment or snapshot."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "records.jsonl"
        write_records_json([(path, out)])
        return [json.loads(line) for line in out.read_text().splitlines()]
