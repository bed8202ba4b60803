"""Our peak memory on a small and a large file: it must not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contest import KRAFTLINE, Contender, ours, run
from benchmarks.data import said_bytes
from benchmarks.metadata import said_records
from benchmarks.plan import Peak, Plan
from kraftline.records.record import Codec


def peaks(plan: Plan) -> Iterator[Peak]:
    data = [plan.maker.data(size) for size in plan.sizes.memory]
    metadata = [plan.maker.metadata(records) for records in plan.sizes.metadata]
    bytes_said = _pair([said_bytes(made.plain_size) for made in data])
    records_said = _pair([said_records(made.records) for made in metadata])
    yield _peak("data to columns", bytes_said, [ours("data_columns", m.path) for m in data])
    packed = [plan.maker.data(size, Codec.ZSTD) for size in plan.sizes.data]
    packed_said = _pair([said_bytes(made.plain_size) for made in packed])
    yield _peak(
        "data, zstd, to columns", packed_said, [ours("data_columns", m.path) for m in packed]
    )
    yield _peak("data to JSON lines", bytes_said, [_dump(str(m.path)) for m in data])
    yield _peak(
        "metadata to columns", records_said, [ours("metadata_columns", m.path) for m in metadata]
    )
    yield _peak("metadata to JSON lines", records_said, [_dump(str(m.path)) for m in metadata])


def _peak(work: str, sizes: tuple[str, str], contenders: list[Contender]) -> Peak:
    first, last = run(contenders[0]).peak, run(contenders[-1]).peak
    return Peak(work, sizes, (first, last))


def _dump(path: str) -> Contender:
    return Contender([KRAFTLINE, "dump", "--format", "jsonl", path])


def _pair(said: list[str]) -> tuple[str, str]:
    return said[0], said[-1]
