"""Logs to play with: batches with times of now, a clock to be set, and looks at what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kraftline.inspect.verify import Finding, verify
from kraftline.records import Record, batches, build_batch
from kraftline.storage.log import PartitionLog
from kraftline.storage.meta_properties import MetaProperties, write_meta_properties

NOW = 1_800_000_000_000


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def one(
    value: bytes | str = b"value",
    *,
    count: int = 1,
    timestamp: int = NOW,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
) -> bytearray:
    """A batch as a client sends it; `producer` is its id, epoch and base sequence."""
    data = value.encode() if isinstance(value, str) else value
    id, epoch, sequence = producer or (-1, -1, -1)
    return bytearray(
        build_batch(
            [Record(n, timestamp + n, key, data) for n in range(count)],
            producer_id=id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def records_of(log: PartitionLog, offset: int | None = None) -> list[Record]:
    """Every record from an offset on, read as a consumer would: batch ranges one after another."""
    return [record for record in _records(log, offset) if not _before(record, offset)]


def values_of(log: PartitionLog, offset: int | None = None) -> list[bytes]:
    return [record.value or b"" for record in records_of(log, offset)]


def _before(record: Record, offset: int | None) -> bool:
    return offset is not None and record.offset < offset


def _records(log: PartitionLog, offset: int | None) -> Iterator[Record]:
    at = log.start_offset if offset is None else offset
    while at < log.end_offset:
        data = log.read(at, 100_000).read()
        if not data:
            return
        for batch in batches(whole(data)):
            yield from batch.records()
            at = batch.next_offset


def whole(data: bytes) -> bytes:
    """A range without the half batch at its end."""
    at = 0
    while len(data) - at >= 12:
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size > len(data):
            break
        at += size
    return data[:at]


def log_directory(root: Path) -> Path:
    """An empty log directory, formatted."""
    root.mkdir(parents=True, exist_ok=True)
    meta = MetaProperties(version=1, cluster_id="kraftlineoracleclustrA", node_id=1)
    write_meta_properties(root / "meta.properties", meta)
    return root


def assert_healthy(directory: Path) -> None:
    """`kraftline verify` has nothing to say against a log directory."""
    found: list[Finding] = []
    verify([str(directory)], found.append)
    assert [each for each in found if not each.is_note][:3] == []
