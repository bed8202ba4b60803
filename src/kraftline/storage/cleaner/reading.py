"""A segment's batches, run by run: framed, checksums compared, uncompressed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kraftline.records.chunks import Chunk, decode_file
from kraftline.records.compression import Scratch
from kraftline.records.runs import OnError, Run, prepare
from kraftline.storage.log.segment import Segment

# Uncompressed bytes of a run: it ends with the batch that reaches this.
_BUDGET: Final = 4 * 1024 * 1024


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
            run = prepare(memory, at, position=piece.position, scratch=scratch, budget=_BUDGET)
            yield Stretch(memory, piece.position, run, run.end - at)
            at = run.end
        scratch.shrink(8 * _BUDGET)

    yield from decode_file(segment.path(), decode, start=position, end=segment.size, chunk=chunk)
