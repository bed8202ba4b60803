"""Every segment and snapshot of the fixtures, read in all ways, as Kafka reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kraftline.errors import BadData
from kraftline.records.arrow import SCHEMA, decode_columns
from kraftline.records.column_reader import read_columns
from kraftline.records.record import Codec
from tests import fixture_files
from tests.records.conftest import record_of
from tests.records.ways import read

LOGS = [
    path
    for path in fixture_files.logs()
    if path.stat().st_size and fixture_files.says(path, "records.jsonl")
]


def kafkas(path: Path) -> list[dict[str, Any]]:
    return list(fixture_files.records(path))


def whole_part(path: Path) -> bytes:
    """The file up to a half-written batch or a preallocated tail."""
    data = path.read_bytes()
    problems: list[BadData] = []
    decode_columns(data, columns=["offset"], on_error=problems.append)
    return data[: problems[0].position] if problems else data


@pytest.mark.parametrize("path", LOGS, ids=fixture_files.name_of)
def test_records_are_kafkas(path: Path, kernel: ModuleType) -> None:
    expected = []
    for line in kafkas(path):
        r = record_of(line)
        expected.append((r.offset, r.timestamp, r.key, r.value, r.headers, r.sequence))
    assert read(whole_part(path)) == expected


@pytest.mark.parametrize("path", LOGS, ids=fixture_files.name_of)
def test_columns_of_the_batch_are_kafkas(path: Path, kernel: ModuleType) -> None:
    kinds = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
    table = decode_columns(whole_part(path))
    assert table.schema == SCHEMA
    columns: dict[str, Callable[[dict[str, Any]], object]] = {
        "timestamp_type": lambda line: kinds[line["timestampType"]],
        "leader_epoch": lambda line: line["partitionLeaderEpoch"],
        "producer_id": lambda line: line["producerId"],
        "producer_epoch": lambda line: line["producerEpoch"],
        "codec": lambda line: Codec[line["codec"].upper()].value,
        "is_transactional": lambda line: line["isTransactional"],
        "is_control": lambda line: line["isControl"],
        "position": lambda line: line["position"],
    }
    lines = kafkas(path)
    for name, said in columns.items():
        assert table.column(name).to_pylist() == [said(line) for line in lines], name


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chunk", [100, 5000, 1 << 20])
def test_a_file_in_chunks_is_the_file_in_one(chunk: int, threads: int, tmp_path: Path) -> None:
    data = b"".join(whole_part(path) for path in LOGS)
    path = tmp_path / "all.log"
    path.write_bytes(data)
    whole = decode_columns(data)
    parts = list(read_columns(path, chunk=chunk, threads=threads))
    with path.open("rb") as file:
        again = list(read_columns(file, chunk=chunk, threads=threads, columns=["position"]))
    rows = 0
    for part in parts:
        assert part == whole.slice(rows, part.num_rows)
        rows += part.num_rows
    assert rows == whole.num_rows
    positions = [p for part in again for p in part.column("position").to_pylist()]
    assert positions == whole.column("position").to_pylist()
