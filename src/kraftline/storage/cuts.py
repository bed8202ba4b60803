"""What was cut off a segment when a log was opened."""

from __future__ import annotations

import msgspec

from kraftline.storage.segment import SegmentReader


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that were cut off: `length` from `position` on. Offsets from `offset` on are gone.

    `batches` counts good ones among them, up to `last_offset`: those were once acknowledged,
    which no crash explains; a disk that lies or a hand in the file does.
    """

    file: str
    position: int
    length: int
    offset: int
    reason: str
    batches: int = 0
    last_offset: int = -1

    def __str__(self) -> str:
        text = (
            f"{self.file}: {self.length:,} bytes cut off at position {self.position:,}, where "
            f"offset {self.offset} was expected: {self.reason}"
        )
        if self.batches:
            text += f"; {self.batches:,} good batches up to offset {self.last_offset} went with it"
        return text


def whole_batches_after(path: str, position: int) -> tuple[int, int]:
    """How many good batches lie behind a position, and the last offset of them (-1: none)."""
    count, last = 0, -1
    with SegmentReader(path, on_damage=lambda damage: None) as reader:
        for batch, _ in reader.batches(position):
            count, last = count + 1, max(last, batch.last_offset)
    return count, last
