"""A segment read from its start to the first byte that is not a good batch.

Everything that opening a log needs is gathered on the way: offsets, epochs, control records and
the indexes as they should be.
"""

from __future__ import annotations

import msgspec

from kraftline.errors import BadData
from kraftline.raft.control_state import ControlState
from kraftline.records.batch import DefaultBatch
from kraftline.records.control import read_control
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.sound_batches import SoundBatch, SoundBatches

_CONTROL = 0x20


class Walked(msgspec.Struct):
    """What is good in a segment: `size` bytes up to `end_offset`; `trouble` says what follows."""

    base_offset: int
    path: str
    end_offset: int
    indexes: IndexBuilder
    size: int = 0
    batches: int = 0
    first_timestamp: int | None = None
    largest_timestamp: int = -1
    file_size: int = 0
    trouble: str | None = None


def walk_segment(
    path: str, base_offset: int, epochs: LeaderEpochs, controls: ControlState
) -> Walked:
    """Read a segment whole; epochs and control records of its good batches are added."""
    found = Walked(base_offset, path, base_offset, IndexBuilder(base_offset))
    walk = SoundBatches(path)
    for batch in walk:
        found.trouble = _refusal(batch, found, epochs, controls)
        if found.trouble is not None:
            break
        epoch = batch.leader_epoch
        if epoch >= 0 and (epochs.latest is None or epoch > epochs.latest):
            epochs.assign(epoch, batch.base_offset)
        found.indexes.add(found.size, batch.last_offset, batch.max_timestamp)
        if found.first_timestamp is None:
            found.first_timestamp = batch.max_timestamp
        found.largest_timestamp = max(found.largest_timestamp, batch.max_timestamp)
        found.batches += 1
        found.size += batch.size
        found.end_offset = batch.last_offset + 1
    found.file_size = walk.file_size
    found.trouble = found.trouble or walk.trouble
    return found


def _refusal(
    batch: SoundBatch, found: Walked, epochs: LeaderEpochs, controls: ControlState
) -> str | None:
    """Why a batch cannot be part of this log, though its checksum is right."""
    if batch.magic != 2:
        return f"a batch of format {batch.magic}"
    # A log may begin later than its first segment's name says: other tools leave such logs, and
    # Kafka starts on them. What is missing after the first batch is a hole.
    is_first = found.batches == 0 and epochs.latest is None and batch.base_offset > found.end_offset
    if batch.base_offset != found.end_offset and not is_first:
        return f"a batch with offset {batch.base_offset}, where {found.end_offset} follows"
    if batch.attributes & _CONTROL:
        try:
            records = DefaultBatch(batch.buffer, batch.start, batch.size, found.size).records(
                check_crc=False
            )
            controls.add(batch.base_offset, [read_control(record).message for record in records])
        except BadData as error:
            return f"a control record that cannot be read: {error.reason}"
    return None
