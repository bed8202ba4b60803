"""Control records: what brokers and controllers write into a log among the users' records.

The key says which kind it is; the value is a message of `kraftline.schema.control`. The version
inside these messages is their first field: on the wire all of them are version 0. Kinds that are
not known yet keep their bytes, since readers must step over them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum

import msgspec

from kraftline.errors import BadData, Corrupt, NotRepresentable
from kraftline.records.record import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Record,
)
from kraftline.records.write import build_batch
from kraftline.schema.codec import decode, encode
from kraftline.schema.control.end_txn_marker import EndTxnMarker
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.leader_change_message import LeaderChangeMessage
from kraftline.schema.control.snapshot_footer_record import SnapshotFooterRecord
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.types import Message

_key = struct.Struct(">hh")
_marker = struct.Struct(">hi")


class ControlType(IntEnum):
    """Kafka's kinds of control records."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_MESSAGES: dict[ControlType, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES = {message: kind for kind, message in _MESSAGES.items()}


class Control(msgspec.Struct, frozen=True):
    """What a control record says. `type` is a bare number where the kind is not known."""

    type: ControlType | int
    message: Message | bytes | None


def type_of(record: Record) -> ControlType | int:
    """The kind of a control record, from its key."""
    if record.key is None or len(record.key) < _key.size:
        raise Corrupt("a control record whose key is too short", offset=record.offset)
    version, kind = _key.unpack_from(record.key)
    if version < 0:
        raise Corrupt(f"a control record whose key has version {version}", offset=record.offset)
    return ControlType(kind) if kind in ControlType.__members__.values() else int(kind)


def read_control(record: Record) -> Control:
    """A record of a control batch, understood as far as this release can."""
    kind = type_of(record)
    if not isinstance(kind, ControlType):
        return Control(kind, record.value)
    if record.value is None:
        raise Corrupt("a control record without a value", offset=record.offset)
    try:
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            return Control(kind, _read_marker(record.value))
        return Control(kind, decode(_MESSAGES[kind], record.value, 0))
    except BadData as problem:
        raise problem.at(offset=record.offset) from None


def _read_marker(value: bytes) -> EndTxnMarker:
    """A later version may have more fields behind these, as Kafka's own reader allows for."""
    if len(value) < _marker.size:
        raise Corrupt("a transaction marker that is too short")
    version, coordinator_epoch = _marker.unpack_from(value)
    if version < 0:
        raise Corrupt(f"a transaction marker of version {version}")
    return EndTxnMarker(coordinator_epoch=coordinator_epoch)


def control_record(offset: int, timestamp: int, message: Message) -> Record:
    """The record that carries one of the messages of a KRaft log."""
    kind = _TYPES.get(type(message))
    if kind is None:
        raise NotRepresentable(f"{type(message).__name__} is not a control record")
    return Record(offset, timestamp, _key.pack(0, kind), encode(message, 0))


def build_control_batch(
    messages: Sequence[Message],
    *,
    base_offset: int,
    timestamp: int,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """One control batch of a KRaft log or snapshot: leader changes, header, footer, voters."""
    records = [
        control_record(base_offset + i, timestamp, message) for i, message in enumerate(messages)
    ]
    return build_batch(records, is_control=True, partition_leader_epoch=partition_leader_epoch)


def build_end_txn_batch(
    *,
    commit: bool,
    base_offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The marker that ends a producer's transaction in a partition."""
    if producer_id == NO_PRODUCER_ID or producer_epoch == NO_PRODUCER_EPOCH:
        raise NotRepresentable("a transaction marker needs a producer id and epoch")
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    record = Record(base_offset, timestamp, _key.pack(0, kind), _marker.pack(0, coordinator_epoch))
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
