"""Control records, against those in real KRaft logs and against Kafka's own markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.errors import Corrupt
from kraftline.records.batch import Batch
from kraftline.records.control import (
    ControlType,
    build_control_batch,
    build_end_txn_batch,
    read_control,
)
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.schema.control.end_txn_marker import EndTxnMarker
from kraftline.schema.types import Message
from tests.records.conftest import written_by_kafka

METADATA = Path(__file__).parent.parent / "fixtures" / "metadata_4_3" / "data"


def control_batches() -> list[Batch]:
    """The control batches of every KRaft log and snapshot of the fixture."""
    found: list[Batch] = []
    for path in sorted(METADATA.rglob("__cluster_metadata-0/*")):
        if path.suffix in (".log", ".checkpoint"):
            found += [batch for batch in batches(path.read_bytes()) if batch.is_control]
    return found


def test_every_kind_of_a_real_quorum_is_read_and_written_back_byte_for_byte() -> None:
    seen = set()
    for batch in control_batches():
        controls = [read_control(record) for record in batch.records()]
        seen |= {control.type for control in controls}
        messages = [c.message for c in controls if isinstance(c.message, Message)]
        again = build_control_batch(
            messages,
            base_offset=batch.base_offset,
            timestamp=batch.base_timestamp,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
        assert again == batch.data
    assert {
        ControlType.LEADER_CHANGE,
        ControlType.SNAPSHOT_HEADER,
        ControlType.SNAPSHOT_FOOTER,
    } <= seen


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_markers_are_kafkas(commit: bool) -> None:
    theirs = written_by_kafka("v2-commit-marker" if commit else "v2-abort-marker")
    [batch] = batches(theirs)
    [record] = batch.records()
    control = read_control(record)
    assert control.type is (ControlType.COMMIT if commit else ControlType.ABORT)
    assert isinstance(control.message, EndTxnMarker)
    ours = build_end_txn_batch(
        commit=commit,
        base_offset=batch.base_offset,
        timestamp=record.timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        coordinator_epoch=control.message.coordinator_epoch,
    )
    assert ours == theirs


def test_an_unknown_kind_keeps_its_bytes() -> None:
    control = read_control(Record(3, 0, b"\x00\x00\x00\x63", b"later"))
    assert (control.type, control.message) == (99, b"later")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x00\x00", b""),
        (b"\xff\xff\x00\x00", b"\x00\x00\x00\x00\x00\x00"),
        (b"\x00\x00\x00\x00", b"\x00\x00"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x00"),
        (b"\x00\x00\x00\x02", None),
    ],
)
def test_malformed_control_records_are_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(Corrupt) as raised:
        read_control(Record(7, 0, key, value))
    assert raised.value.offset == 7
