"""Formatted directories, a listener that keeps what it gets, and looks at what is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from kraftline.inspect.verify import Finding, verify
from kraftline.raft import CommittedBatches, EmbeddedLog, LogSettings
from kraftline.records.control import ControlType, type_of
from kraftline.schema.control.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.no_op_record import NoOpRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage.meta_properties import MetaProperties, write_meta_properties
from kraftline.storage.names import SnapshotId, parse_snapshot
from kraftline.storage.segment import SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter

T = TypeVar("T")
NODE = 1
DIRECTORY_ID = Uuid.parse("kUMDWXaTQ8WQbfVjQ6lJmw")
ENDPOINT = Endpoint(name="CONTROLLER", host="127.0.0.1", port=9093)
NO_OP = encode_record(NoOpRecord(), 0)
QUIET = LogSettings(clean_interval_ms=0)

STRUCTURE = (
    "batch-",
    "tail-",
    "index-",
    "timeindex-",
    "segment-",
    "leader-epochs",
    "quorum-state",
    "partition-metadata",
    "producer-snapshot",
    "snapshot-header",
    "snapshot-footer",
    "snapshot-offset",
    "snapshot-epoch",
    "snapshot-missing",
    "control-record",
    "unreadable",
)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def formatted(root: Path, *, dynamic: bool = False, node_id: int = NODE) -> Path:
    """A log directory as formatting leaves it."""
    data = root / "data"
    data.mkdir(parents=True)
    meta = MetaProperties(
        cluster_id="kraftlineoracleclustrA", node_id=node_id, directory_id=DIRECTORY_ID
    )
    write_meta_properties(data / "meta.properties", meta)
    if dynamic:
        metadata_log(data).mkdir()
        voter = Voter(
            voter_id=node_id,
            voter_directory_id=DIRECTORY_ID,
            endpoints=(ENDPOINT,),
            kraft_version_feature=KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        )
        with SnapshotWriter(
            metadata_log(data),
            SnapshotId(0, 0),
            kraft_version=1,
            voters=VotersRecord(voters=(voter,)),
        ) as writer:
            writer.freeze()
    return data


def topic(n: int) -> bytes:
    """A small record that is not like any other."""
    record = TopicRecord(name=f"topic-{n:06d}", topic_id=Uuid((n + 1000).to_bytes(16, "big")))
    return encode_record(record, 0)


def metadata_log(data: Path) -> Path:
    return data / "__cluster_metadata-0"


@contextlib.asynccontextmanager
async def opened(data: Path, settings: LogSettings = QUIET) -> AsyncIterator[EmbeddedLog]:
    async with await EmbeddedLog.open(data, node_id=NODE, settings=settings) as log:
        yield log


def names(data: Path) -> list[str]:
    return sorted(os.listdir(metadata_log(data)))


def values(data: Path) -> list[bytes]:
    """The values of all records on the disk that are not control records, checked."""
    return [value for _, value in numbered(data)]


def numbered(data: Path) -> list[tuple[int, bytes]]:
    """Offsets and values; offsets of the whole log must follow each other."""
    found: list[tuple[int, bytes]] = []
    expected: int | None = None
    for path in sorted(metadata_log(data).glob("*.log")):
        with SegmentReader(path) as reader:
            for batch, _ in reader.batches():
                assert expected in (None, batch.base_offset)
                expected = batch.next_offset
                if not batch.is_control:
                    found += [(record.offset, record.value or b"") for record in batch.records()]
    return found


def controls(data: Path) -> list[tuple[int, int, ControlType | int]]:
    """Offset, leader epoch and type of each control record on the disk."""
    found = []
    for path in sorted(metadata_log(data).glob("*.log")):
        with SegmentReader(path) as reader:
            for batch, _ in reader.batches():
                if batch.is_control:
                    epoch = batch.partition_leader_epoch
                    found += [(r.offset, epoch, type_of(r)) for r in batch.records()]
    return found


def snapshot_ids(data: Path) -> list[SnapshotId]:
    parsed = [parse_snapshot(name) for name in names(data)]
    return [each.id for each in parsed if each is not None]


def assert_healthy(data: Path, *, payloads: bool = True) -> None:
    """`kraftline verify` has nothing to say against a directory. Without `payloads`, what the
    records say does not matter: some tests write records and snapshots that mean nothing."""
    found: list[Finding] = []
    verify([str(data)], found.append)
    wrong = [each for each in found if not each.is_note]
    if not payloads:
        wrong = [each for each in wrong if each.code.startswith(STRUCTURE)]
    assert wrong[:3] == []


class Keeper:
    """A listener that keeps what it is told, and checks that there are no gaps."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.told: list[str] = []
        self.next_offset = 0
        self.leader: tuple[int | None, int] | None = None

    async def handle_commit(self, batches: CommittedBatches) -> None:
        assert batches.base_offset == self.next_offset
        for batch in batches:
            assert batch.base_offset == self.next_offset
            self.next_offset = batch.next_offset
            if not batch.is_control:
                self.values += [record.value or b"" for record in batch.records()]
        assert batches.end_offset == self.next_offset
        self.told.append("commit")

    async def handle_load_snapshot(self, snapshot: SnapshotReader) -> None:
        assert snapshot.id is not None
        self.values = [record.value or b"" for record in snapshot.records()]
        self.next_offset = snapshot.id.end_offset
        self.told.append(f"snapshot {snapshot.id.end_offset}")

    async def handle_leader_change(self, leader_id: int | None, epoch: int) -> None:
        self.leader = (leader_id, epoch)
        self.told.append("leader")
