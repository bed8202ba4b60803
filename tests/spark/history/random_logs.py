"""Metadata directories of generated logs, with transactions and gaps that snapshots bridge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from kraftline.inspect.history import open_history
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema import metadata as m
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Message
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import SnapshotWriter
from tests.metadata.generated import LogMaker

START = 1_772_334_000_000  # 2026-03-01T03:00:00Z
_MARKERS = (m.BeginTransactionRecord, m.EndTransactionRecord, m.AbortTransactionRecord)


def make_log(folder: Path, seed: int, batches: int = 40) -> Path:
    """A log from offset 0 on."""
    rng = Random(seed)
    _write(folder, _with_transactions(rng, LogMaker(rng).log(batches)))
    return folder


def make_odd_log(folder: Path, seed: int) -> Path:
    """A log with records that no controller writes, each in a batch of its own."""
    rng = Random(seed)
    maker = LogMaker(rng)
    log = maker.log(30)
    log += [[odd] for odd in maker.odd_records() if not _is_misfit(odd[0])]
    _write(folder, [*log, *(maker.batch() for _ in range(10))])
    return folder


def _is_misfit(record: Message) -> bool:
    """Whether only the state tells that it does not fit: such a record is not refused in Spark."""
    return isinstance(record, m.PartitionChangeRecord) and (
        record.directories is not None and record.replicas is None
    )


def make_log_with_gap(folder: Path, seed: int) -> Path:
    """The same in two parts: between them a gap, behind it a snapshot that bridges it."""
    rng = Random(seed)
    whole = make_log(folder / "whole", seed, batches=50)
    (leg,) = open_history([str(whole)]).legs
    ends = [batch.last_offset for batch in leg.batches]
    first = rng.randrange(len(ends) // 4, len(ends) // 2)
    second = rng.randrange(first + 2, len(ends))
    parts = folder / "parts"
    parts.mkdir()
    data = Path(leg.batches[0].file).read_bytes()
    (parts / f"{0:020d}.log").write_bytes(data[: leg.batches[first + 1].position])
    end = ends[second] + 1
    (parts / f"{end:020d}.log").write_bytes(
        data[leg.batches[second].position + leg.batches[second].size :]
    )
    image = open_history([str(whole)]).at(leg, end - 1)
    _snapshot(parts, image, end, leg.time_at(end - 1))
    return parts


def _with_transactions(rng: Random, log: list[list[Versioned]]) -> list[list[Versioned]]:
    """Some runs of batches made transactions, of which some are aborted and the last left open."""
    out: list[list[Versioned]] = []
    while log:
        count = rng.randrange(1, 6)
        run, log = log[:count], log[count:]
        plain = not any(isinstance(each, _MARKERS) for batch in run for each, _ in batch)
        if not plain or rng.random() < 0.7:
            out += run
        elif rng.random() < 0.8:
            begin: Versioned = (m.BeginTransactionRecord(name="some"), 0)
            out += [[begin], *run[:-1], [*run[-1], (m.EndTransactionRecord(), 0)]]
        else:
            # What would have been is not, for what follows neither: only things of their own.
            topic = LogMaker(Random(rng.randrange(1 << 32))).create_topic()
            out += [
                *run,
                [(m.BeginTransactionRecord(name="lost"), 0), *topic],
                [(m.NoOpRecord(), 0), (m.AbortTransactionRecord(reason="no"), 0)],
            ]
    if rng.random() < 0.3:
        out.append([(m.BeginTransactionRecord(name="open"), 0)])
        out.append([(m.FeatureLevelRecord(name="group.version", feature_level=2), 0)])
    return out


def _write(folder: Path, log: Sequence[Sequence[Versioned]]) -> None:
    folder.mkdir(parents=True)
    offset, data = 0, b""
    for number, batch in enumerate(log):
        if not batch:
            continue
        # Times of batches may go back; those of the log never do.
        time = START + 1000 * (number - 3 * (number % 5 == 4))
        records = [
            Record(offset + at, time, None, encode_record(message, version))
            for at, (message, version) in enumerate(batch)
        ]
        data += build_batch(records, partition_leader_epoch=1 + number // 20)
        offset += len(batch)
    (folder / f"{0:020d}.log").write_bytes(data)


def _snapshot(folder: Path, image: MetadataImage, end: int, time: int) -> None:
    options = image.write_options(lambda loss: None)
    with SnapshotWriter(
        folder, SnapshotId(end, 1), last_contained_log_timestamp=time, clock=lambda: time
    ) as writer:
        writer.append(
            [encode_record(message, version) for message, version in image.write(options)]
        )
        writer.freeze()
