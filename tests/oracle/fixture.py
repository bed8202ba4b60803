"""Save a stopped node's log directory as a fixture, with what Kafka's tools say about it."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.oracle.dump import Decoder, decoder_for, dump_text
from tests.oracle.jars import NEWEST
from tests.oracle.records import write_records_json

FIXTURES = Path(__file__).parents[1] / "fixtures"
# Text above this size is kept compressed.
_LARGE = 10_000
_INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")


def fresh(name: str) -> Path:
    """The fixture folder `name` without its old data and kafka-says."""
    folder = FIXTURES / name
    for part in ("data", "kafka-says"):
        shutil.rmtree(folder / part, ignore_errors=True)
    return folder


def copy_data(source: Path, target: Path) -> None:
    """Copy a log directory as it is; only the lock file (always empty) stays behind."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lock"))


def ask_kafka(folder: Path, *, version: str = NEWEST, dumps: bool = True) -> None:
    """Fill `kafka-says/` for every log, snapshot and index file below `data/`.

    `X.records.jsonl` is what FileRecords reads, `X.dump.txt` what DumpLogSegments prints;
    both at the same relative path as the file in `data/`.
    """
    data, says = folder / "data", folder / "kafka-says"
    logs = sorted(p for p in data.rglob("*") if p.suffix in (".log", ".checkpoint"))
    logs = [p for p in logs if p.stat().st_size > 0]
    pairs = [(p, _beside(says, data, p, ".records.jsonl")) for p in logs]
    if pairs:
        write_records_json(pairs)
    if dumps:
        _dump(data, says, logs, version)
    _compress_large(says.rglob("*"))


def _dump(data: Path, says: Path, logs: list[Path], version: str) -> None:
    by_decoder: dict[Decoder, list[Path]] = {}
    for path in logs:
        by_decoder.setdefault(decoder_for(path), []).append(path)
    for path in sorted(p for p in data.rglob("*") if p.suffix in _INDEXES and _dumpable(p)):
        by_decoder.setdefault(Decoder.NONE, []).append(path)
    for decoder, paths in by_decoder.items():
        for path, text in dump_text(paths, decoder, version=version).items():
            _beside(says, data, path, ".dump.txt").write_text(text)


def _dumpable(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    # The dump tool reads an index beside its log, and fails when that log is empty.
    log = path.with_suffix(".log")
    return path.suffix == ".snapshot" or (log.exists() and log.stat().st_size > 0)


def _beside(says: Path, data: Path, path: Path, suffix: str) -> Path:
    target = says / path.relative_to(data)
    target = target.with_name(target.name + suffix)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _compress_large(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_file() and path.stat().st_size > _LARGE:
            # mtime 0 keeps the bytes the same for the same text.
            packed = gzip.compress(path.read_bytes(), mtime=0)
            path.with_name(path.name + ".gz").write_bytes(packed)
            path.unlink()
