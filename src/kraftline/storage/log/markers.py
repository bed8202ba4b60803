"""The marker of a transaction's end, read from a batch."""

from __future__ import annotations

from kraftline.records.batch import DefaultBatch
from kraftline.records.control import ControlType, read_control
from kraftline.schema.control.end_txn_marker import EndTxnMarker
from kraftline.storage.log.producers import Marker


def read_marker(buffer: memoryview, start: int, size: int) -> Marker | None:
    """None where a control batch ends no transaction: emptied by compaction, or of another kind."""
    records = DefaultBatch(buffer, start, size, start).records(check_crc=False)
    if not records:
        return None
    control = read_control(records[0])
    if not isinstance(control.message, EndTxnMarker):
        return None
    return Marker(control.type == ControlType.COMMIT, control.message.coordinator_epoch)
