"""A segment read from its start to the first byte that is not a good batch.

Everything that opening a log needs is gathered on the way: offsets, epochs, control records and
the indexes as they should be.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator

import msgspec

from kraftline.errors import BadData
from kraftline.raft.control_state import ControlState
from kraftline.raft.epochs import LeaderEpochs
from kraftline.records.batch import DefaultBatch
from kraftline.records.checksums import sound_until
from kraftline.records.control import read_control
from kraftline.records.kernel import active as kernel
from kraftline.storage.batch_search import Frame, zeros_from
from kraftline.storage.segment import Damage, Run, SegmentReader
from kraftline.storage.segment_write import IndexBuilder

_ROWS = 512
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
    damages: list[Damage] = []
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    with SegmentReader(path, on_damage=damages.append) as reader:
        found.file_size = reader.size()
        for run in reader.runs(live=True):
            if run.position != found.size:
                break  # something was passed over: the log ends before it
            if not _take(run, found, epochs, controls, table):
                break
            if damages:
                break
        if found.trouble is None and found.size < found.file_size:
            found.trouble = _why(path, found, damages)
    return found


def whole_batches_after(path: str, position: int) -> tuple[int, int]:
    """How many good batches lie behind a position, and the last offset of them (-1: none)."""
    count, last = 0, -1
    with SegmentReader(path, on_damage=lambda damage: None) as reader:
        for batch, _ in reader.batches(position):
            count, last = count + 1, max(last, batch.last_offset)
    return count, last


def _take(
    run: Run, found: Walked, epochs: LeaderEpochs, controls: ControlState, table: array[int]
) -> bool:
    view = memoryview(run.buffer)
    sound = sound_until(view, run.start, run.end)
    for at, size, base_offset, delta, epoch, attributes, timestamp in _rows(
        view, run.start, sound, table
    ):
        if base_offset != found.end_offset:
            found.trouble = f"a batch with offset {base_offset}, where {found.end_offset} follows"
            return False
        if attributes & _CONTROL:
            try:
                records = DefaultBatch(view, at, size, found.size).records(check_crc=False)
                controls.add(base_offset, [read_control(record).message for record in records])
            except BadData as error:
                found.trouble = f"a control record that cannot be read: {error.reason}"
                return False
        if epoch >= 0 and (epochs.latest is None or epoch > epochs.latest):
            epochs.assign(epoch, base_offset)
        last = base_offset + delta
        found.indexes.add(Frame(found.size, size, 2, base_offset, last, timestamp))
        if found.first_timestamp is None:
            found.first_timestamp = timestamp
        found.largest_timestamp = max(found.largest_timestamp, timestamp)
        found.batches += 1
        found.size += size
        found.end_offset = last + 1
    if sound < run.end:
        magic = view[sound + 16]
        found.trouble = (
            f"a batch of format {magic}" if magic != 2 else "a batch whose checksum is wrong"
        )
    return sound == run.end


def _rows(
    view: memoryview, at: int, end: int, table: array[int]
) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    while at < end:
        rows, at, _ = kernel.scan(view, at, end, 0, table)
        for t in range(0, rows * kernel.STRIDE, kernel.STRIDE):
            yield (
                table[t + kernel.POSITION],
                table[t + kernel.SIZE],
                table[t + kernel.BASE_OFFSET],
                table[t + kernel.LAST_OFFSET_DELTA],
                table[t + kernel.LEADER_EPOCH],
                table[t + kernel.ATTRIBUTES],
                table[t + kernel.MAX_TIMESTAMP],
            )


def _why(path: str, found: Walked, damages: list[Damage]) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if zeros_from(fd, found.size, found.file_size):
            return "zeros, which were never written"
    finally:
        os.close(fd)
    return damages[0].reason if damages else "a batch that is half written"
