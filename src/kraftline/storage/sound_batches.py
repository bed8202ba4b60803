"""The batches of a segment from its start to the first byte that is not a good one.

What opening a log after a crash goes by: framing and checksums of every batch, none decoded.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

from kraftline.errors import BadData
from kraftline.records.kernel import active as kernel
from kraftline.records.legacy import LegacyBatch
from kraftline.storage.batch_search import zeros_from
from kraftline.storage.segment import Damage, Run, SegmentReader

_ROWS = 512


class SoundBatch(NamedTuple):
    """A batch in `buffer[start:start + size]`, which holds until the next one is asked for."""

    buffer: memoryview
    start: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


class SoundBatches:
    """Iterate once. Afterwards `size` bytes were good, and `trouble` says what follows them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.file_size = 0
        self.trouble: str | None = None

    def __iter__(self) -> Iterator[SoundBatch]:
        damages: list[Damage] = []
        with SegmentReader(self.path, on_damage=damages.append) as reader:
            self.file_size = reader.size()
            for run in reader.runs(live=True):
                if run.position != self.size:
                    break  # something was passed over: the good bytes end before it
                yield from self._checked(run)
                if damages or self.trouble is not None:
                    break
        if self.trouble is None and self.size < self.file_size:
            self.trouble = self._why(damages)

    def _checked(self, run: Run) -> Iterator[SoundBatch]:
        for batch in batches_in(memoryview(run.buffer), run.start, run.end):
            if not is_sound(batch):
                self.trouble = "a batch whose checksum is wrong"
                return
            yield batch
            self.size += batch.size

    def _why(self, damages: list[Damage]) -> str:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if zeros_from(fd, self.size, self.file_size):
                return "zeros, which were never written"
        finally:
            os.close(fd)
        return damages[0].reason if damages else "a batch that is half written"


def batches_in(view: memoryview, start: int, end: int) -> Iterator[SoundBatch]:
    """The whole batches from `start` on. Whether each is sound is still to be seen."""
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    at, rows = start, 1
    while at < end and rows:
        rows, at, _ = kernel.scan(view, at, end, 0, table)
        for t in range(0, rows * kernel.STRIDE, kernel.STRIDE):
            yield _batch(view, table, t)


def _batch(view: memoryview, table: array[int], t: int) -> SoundBatch:
    base_offset = table[t + kernel.BASE_OFFSET]
    return SoundBatch(
        view,
        table[t + kernel.POSITION],
        table[t + kernel.SIZE],
        table[t + kernel.MAGIC],
        base_offset,
        base_offset + table[t + kernel.LAST_OFFSET_DELTA],
        table[t + kernel.MAX_TIMESTAMP],
        table[t + kernel.LEADER_EPOCH],
        table[t + kernel.ATTRIBUTES],
        table[t + kernel.PRODUCER_ID],
        table[t + kernel.PRODUCER_EPOCH],
        table[t + kernel.BASE_SEQUENCE],
    )


def is_sound(batch: SoundBatch) -> bool:
    """Is its checksum right?"""
    view, start, size = batch.buffer, batch.start, batch.size
    if batch.magic == 2:
        stored = int.from_bytes(view[start + 17 : start + 21], "big")
        return bool(google_crc32c.value(bytes(view[start + 21 : start + size])) == stored)
    try:
        LegacyBatch(view, start, size, start).check()
    except BadData:
        return False
    return True
