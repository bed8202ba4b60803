"""A segment's batches, run by run: framed, checksums compared, uncompressed.

Where a run has only plain batches of v2, nothing is done for each of them in Python: logs of small
batches, as coordinators write them, are cleaned twice as fast that way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import google_crc32c

from kraftline.errors import Corrupt
from kraftline.records.chunks import Chunk, decode_file
from kraftline.records.compression import Scratch
from kraftline.records.kernel import active as records_kernel
from kraftline.records.runs import Group, OnError, Run, prepare
from kraftline.storage.cleaner.kernel import active as kernel
from kraftline.storage.log.segment import Segment

# Uncompressed bytes of a run: it ends with the batch that reaches this.
_BUDGET: Final = 4 * 1024 * 1024
_ROWS: Final = 4096
# Up to here the kernel's own checksums are quicker than a call for each batch.
_SMALL: Final = 1024


class Stretch(NamedTuple):
    """A run of batches, and the memory that has them as they are in the file; good until the next
    is asked for. `position` is where the memory begins in the file, `size` what the run takes
    there."""

    memory: memoryview
    position: int
    run: Run
    size: int


def stretches(segment: Segment, position: int, chunk: int) -> Iterator[Stretch]:
    """Of a closed segment from a batch's position on. BadData where it cannot be read."""

    def decode(piece: Chunk, on_error: OnError | None, scratch: Scratch) -> Iterator[Stretch]:
        memory, at = memoryview(piece.memory)[: piece.size], 0
        while at < piece.size:
            run = _plain(memory, at, piece.position)
            if run is None:
                run = prepare(memory, at, position=piece.position, scratch=scratch, budget=_BUDGET)
            yield Stretch(memory, piece.position, run, run.end - at)
            at = run.end
        scratch.shrink(8 * _BUDGET)

    yield from decode_file(segment.path(), decode, start=position, end=segment.size, chunk=chunk)


@cache
def _tables() -> array[int]:
    return array("I", kernel.checksum_tables())


def _plain(memory: memoryview, at: int, position: int) -> Run | None:
    """Batches of v2 without compression up to one that is not, or the end; None where none is, or
    something is wrong with them, which others can say better."""
    table = array("q", bytes(8 * records_kernel.STRIDE * _ROWS))
    rows, _, _ = records_kernel.scan(memory, at, len(memory), position, table)
    odd, none = array("q", bytes(8 * _ROWS)), array("q")
    if kernel.odd_rows(table, 0, rows, 7, -1, none, odd):
        rows = odd[0]
    if not rows:
        return None
    bad, large = kernel.unsound(memory, table, rows, position, _SMALL, _tables(), odd)
    if bad >= 0:
        return None
    for row in odd[:large]:
        t = row * records_kernel.STRIDE
        start = table[t + records_kernel.POSITION] - position
        end = start + table[t + records_kernel.SIZE]
        stored = table[t + records_kernel.CRC] & 0xFFFFFFFF
        if google_crc32c.value(bytes(memory[start + 21 : end])) != stored:
            return None
    totals = array("q", bytes(8 * records_kernel.TOTALS))
    try:
        records_kernel.measure(memory, table, 0, rows, totals)
    except Corrupt:
        return None
    last = (rows - 1) * records_kernel.STRIDE
    end = table[last + records_kernel.BODY_END]
    return Run(table, [Group(memory, 0, rows)], totals, end)
