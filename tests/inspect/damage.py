"""Copies of real files, and ways to damage them so that only one thing is wrong."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import google_crc32c

from kraftline.inspect.verify import Finding, Summary, verify
from kraftline.records import Record, batches, build_batch
from kraftline.records.batch import DefaultBatch
from kraftline.storage.files import Path as AnyPath

FIXTURES = Path(__file__).parents[1] / "fixtures"
TOPICS = FIXTURES / "topics_4_3" / "data" / "node-1"
SECOND = FIXTURES / "topics_4_3" / "data" / "node-1-second"
METADATA = FIXTURES / "metadata_4_3" / "data" / "node-1"
LOG = "00000000000000000000.log"

COUNT, MAX_TIMESTAMP, BASE_TIMESTAMP, LAST_DELTA, ATTRIBUTES, EPOCH = 57, 35, 27, 23, 21, 12


def check(*paths: AnyPath, first: bool = False) -> tuple[list[Finding], Summary]:
    """Findings and notes of a walk, and its summary."""
    found: list[Finding] = []
    summary = verify([os.fspath(path) for path in paths], found.append, first=first)
    return found, summary


def findings(*paths: AnyPath) -> list[Finding]:
    return [finding for finding in check(*paths)[0] if not finding.is_note]


def notes(*paths: AnyPath) -> list[Finding]:
    return [finding for finding in check(*paths)[0] if finding.is_note]


def codes(*paths: AnyPath) -> list[str]:
    return [finding.code for finding in findings(*paths)]


def copy(source: Path, folder: Path) -> Path:
    """A directory of the same name in `folder`, alone: with no mark of a clean stop beside it."""
    target = folder / source.name
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def cleanly_stopped(partition: Path) -> Path:
    (partition.parent / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return partition


def patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def flip(path: Path, position: int) -> None:
    data = path.read_bytes()
    patch(path, position, bytes([data[position] ^ 0x10]))


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def positions(path: Path) -> list[int]:
    return [batch.position for batch in batches(path.read_bytes())]


def reseal(path: Path, position: int) -> None:
    """Make the checksum of a v2 batch right again."""
    data = path.read_bytes()
    (length,) = struct.unpack_from(">i", data, position + 8)
    crc = google_crc32c.value(data[position + 21 : position + 12 + length])
    patch(path, position + 17, crc.to_bytes(4, "big"))


def set_field(path: Path, position: int, at: int, layout: str, value: int) -> None:
    """Change a header field of a batch and keep its checksum right."""
    patch(path, position + at, struct.pack(f">{layout}", value))
    reseal(path, position)


def change_records(
    path: Path, position: int, change: Callable[[list[Record]], Sequence[Record]]
) -> None:
    """Put another batch in the place of one, with changed records and the same header."""
    data = path.read_bytes()
    batch = next(iter(batches(data, position)))
    assert isinstance(batch, DefaultBatch)
    new = build_batch(
        change(batch.records()),
        codec=batch.codec,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )
    path.write_bytes(data[:position] + new + data[position + batch.size_in_bytes :])


def change_value(path: Path, position: int, change: Callable[[bytes], bytes | None]) -> None:
    """Change the value of the first record of a batch."""

    def records(found: list[Record]) -> list[Record]:
        first = found[0]
        assert first.value is not None
        return [
            Record(first.offset, first.timestamp, first.key, change(first.value), first.headers),
            *found[1:],
        ]

    change_records(path, position, records)


def data_batches(path: Path) -> list[int]:
    """Positions of batches that are not control batches."""
    return [batch.position for batch in batches(path.read_bytes()) if not batch.is_control]


def drop_indexes(partition: Path) -> None:
    """So that a changed log is not also at odds with its indexes."""
    for path in partition.iterdir():
        if path.suffix in (".index", ".timeindex"):
            path.unlink()
