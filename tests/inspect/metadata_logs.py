"""Metadata directories made by hand: a few records a batch, at chosen offsets and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema import metadata as m
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint
from kraftline.schema.types import Message, Uuid
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import SnapshotWriter

START = 1_772_334_000_000  # 2026-03-01T03:00:00Z
ORDERS = Uuid(bytes(15) + b"\x0a")
OTHER = Uuid(bytes(15) + b"\x0b")
VERSION = m.FeatureLevelRecord(name="metadata.version", feature_level=30)


def uuid(number: int) -> Uuid:
    return Uuid(bytes(8) + number.to_bytes(8, "big"))


def newest(message: Message) -> int:
    return message.SPEC.versions.last


def value(message: Message) -> bytes:
    return encode_record(message, newest(message))


def batch(messages: Sequence[Message], offset: int, *, time: int = START, epoch: int = 1) -> bytes:
    records = [Record(offset + n, time, None, value(each)) for n, each in enumerate(messages)]
    return build_batch(records, partition_leader_epoch=epoch)


def make_segment(
    folder: Path,
    batches: Sequence[Sequence[Message]],
    *,
    start: int = 0,
    epoch: int = 1,
    time: int = START,
) -> Path:
    """A segment with a batch a second; its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{start:020d}.log"
    offset, data = start, b""
    for number, messages in enumerate(batches):
        data += batch(messages, offset, time=time + 1000 * number, epoch=epoch)
        offset += len(messages)
    path.write_bytes(data)
    return path


def make_log(root: Path, *batches: Sequence[Message]) -> Path:
    """A metadata directory with one segment from offset 0 on."""
    folder = root / "__cluster_metadata-0"
    make_segment(folder, batches)
    return folder


def make_snapshot(
    folder: Path, end: int, messages: Sequence[Message], *, epoch: int = 1, time: int = START
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with SnapshotWriter(
        folder, SnapshotId(end, epoch), last_contained_log_timestamp=time, clock=lambda: time
    ) as writer:
        writer.append([value(each) for each in messages])
        writer.freeze()
    return Path(writer.path)


def register(broker: int, *, epoch: int, incarnation: int = 0, fenced: bool = True) -> Message:
    return m.RegisterBrokerRecord(
        broker_id=broker,
        broker_epoch=epoch,
        incarnation_id=uuid(incarnation or 1000 + broker),
        end_points=(BrokerEndpoint(name="PLAINTEXT", host=f"host-{broker}", port=9092),),
        fenced=fenced,
        log_dirs=(uuid(5000 + broker),),
    )


def topic(name: str = "orders", topic_id: Uuid = ORDERS) -> Message:
    return m.TopicRecord(name=name, topic_id=topic_id)


def partition(
    number: int,
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    topic_id: Uuid = ORDERS,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
) -> Message:
    return m.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        leader=replicas[0] if leader is None else leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(uuid(5000 + replica) for replica in replicas),
    )


def cluster(brokers: int = 3, partitions: int = 4) -> list[list[Message]]:
    """Brokers in service and a topic: offsets 0, 1 to `brokers`, then the topic."""
    out: list[list[Message]] = [[VERSION]]
    out += [[register(n, epoch=n, fenced=False)] for n in range(1, brokers + 1)]
    out.append([topic(), *(partition(n) for n in range(partitions))])
    return out
