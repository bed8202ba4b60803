"""Logs to images as the tests need them: one publication per batch, transactions as a controller
takes them, and images as lines that can be compared with Kafka's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import LATEST_PRODUCTION
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.jsonform import to_json
from kraftline.schema.metadata import (
    TYPE_NAMES,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kraftline.schema.metadata.frame import decode_record, record_from_json
from kraftline.schema.types import Message
from kraftline.storage.segment import SegmentReader, TailKind


@dataclass
class LogBatch:
    """`records` are with their offsets, in the versions that the log has them in."""

    last_offset: int
    epoch: int
    time: int
    records: list[tuple[int, Message, int]]


def read_batches(paths: Iterable[Path], start: int = 0) -> Iterator[LogBatch]:
    """The batches of log files from an offset on; control batches have no records."""
    for path in paths:
        with SegmentReader(path) as reader:
            for batch, _ in reader.batches():
                if batch.base_offset < start:
                    continue
                records = []
                if not batch.is_control:
                    for record in batch.records():
                        assert record.value is not None
                        records.append((record.offset, *decode_record(record.value)))
                yield LogBatch(
                    batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp, records
                )
            assert reader.tail is not None
            assert reader.tail.kind in (TailKind.COMPLETE, TailKind.ZEROS)


def batches_of(batches: Iterable[Iterable[Versioned]]) -> list[LogBatch]:
    """Batches out of bare records, with offsets from 0 on, as the oracle gives them."""
    out = []
    offset = 0
    for batch in batches:
        records = [(offset + i, *record) for i, record in enumerate(batch)]
        time = 1000 + offset
        offset += len(records)
        out.append(LogBatch(offset - 1, 1, time, records))
    return out


@dataclass
class Replayer:
    """Replays batches; faults are noted, and the record that gave one is passed over."""

    image: MetadataImage = EMPTY
    faults: list[tuple[int, str]] = field(default_factory=list)
    in_transaction: bool = False
    # The deltas of the last batch that were applied.
    published: list[MetadataDelta] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.delta = MetadataDelta(self.image)

    def take(self, batch: LogBatch) -> MetadataImage:
        """The image after a batch: unchanged inside a transaction."""
        self.published = []
        for offset, record, _ in batch.records:
            try:
                self._replay(record, batch, offset)
            except ReplayError as error:
                self.faults.append((offset, error.reason))
        if not self.in_transaction:
            self._publish(batch, batch.last_offset)
        return self.image

    def snapshot(self, path: Path) -> MetadataImage:
        """The image that a snapshot gives over the one before."""
        for batch in read_batches([path]):
            for _, record, _ in batch.records:
                self.delta.replay(record)
            time = batch.time
        self.delta.finish_snapshot()
        end, epoch = map(int, path.stem.split("-"))
        self._publish(LogBatch(end - 1, epoch, time, []), end - 1)
        return self.image

    def _replay(self, record: Message, batch: LogBatch, offset: int) -> None:
        match record:
            case BeginTransactionRecord():
                self._publish(batch, offset - 1)
                self.in_transaction = True
            case EndTransactionRecord():
                self.in_transaction = False
            case AbortTransactionRecord():
                self.in_transaction = False
                self.delta = MetadataDelta(self.image)
            case _:
                self.delta.replay(record)

    def _publish(self, batch: LogBatch, offset: int) -> None:
        self.image = self.delta.apply(Provenance(offset, batch.epoch, batch.time, True))
        self.published.append(self.delta)
        self.delta = MetadataDelta(self.image)


def replay(records: Iterable[Message], image: MetadataImage = EMPTY) -> MetadataImage:
    """All records in one delta."""
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(image.provenance)


def own_options(image: MetadataImage) -> WriteOptions:
    """As the oracle's lines are written: for the image's version, or 30 while it has none."""
    version = image.features.metadata_version or LATEST_PRODUCTION
    return WriteOptions(version, image.features.elr_enabled, lambda loss: None)


def written(image: MetadataImage, options: WriteOptions | None = None) -> list[dict[str, Any]]:
    """An image as JSON records, in the order in which they are written."""
    records = image.write(options or own_options(image))
    return [
        {
            "type": TYPE_NAMES[message.SPEC.key],
            "version": version,
            "data": to_json(message, version),
        }
        for message, version in records
    ]


def state(image: MetadataImage) -> list[str]:
    """All that an image holds, as text to compare: nothing that a version leaves out is hidden."""
    return canonical(written(image, WriteOptions(LATEST_PRODUCTION, True)))


def canonical(records: Sequence[Any]) -> list[str]:
    """One text a record, in no order: Kafka iterates hash maps, also inside some records."""
    return sorted(_text(record) for record in records)


def _text(record: dict[str, Any]) -> str:
    data = dict(record["data"])
    for name, key in (("endPoints", "name"), ("features", "name"), ("entity", "entityType")):
        if name in data:
            data[name] = sorted(data[name], key=lambda each: str(each[key]))
    return json.dumps({**record, "data": data}, sort_keys=True, ensure_ascii=False)


def sections(records: Sequence[Any]) -> list[str]:
    """The record types in the order in which they come, without repeats; topics and partitions
    are one section."""
    out: list[str] = []
    for record in records:
        name = "TOPICS" if record["type"] in _TOPICS else record["type"]
        if not out or out[-1] != name:
            out.append(name)
    return out


_TOPICS = ("TOPIC_RECORD", "PARTITION_RECORD")


def digest(records: Sequence[Any]) -> str:
    text = "\n".join(canonical(records))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def messages(records: Sequence[Any]) -> list[Message]:
    """JSON records as messages."""
    return [record_from_json(record)[0] for record in records]
