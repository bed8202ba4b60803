"""Where one batch ends and the next begins, in any mix of formats."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kraftline.errors import BadData, Corrupt, Truncated, Unsupported
from kraftline.records.batch import Batch, DefaultBatch
from kraftline.records.kernel import active as kernel
from kraftline.records.legacy import LegacyBatch
from kraftline.records.record import Bytes

_ROWS = 64


def as_view(buffer: Bytes) -> memoryview:
    """The buffer as flat bytes; anything that exports its memory will do."""
    view = memoryview(buffer)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def batches(
    buffer: Bytes, start: int = 0, end: int | None = None, *, position: int = 0
) -> Iterator[Batch]:
    """The batches between `start` and `end`, in order, without looking inside.

    `position` is where the buffer's first byte stands in its file. After the last whole batch a
    half-written one raises Truncated, nonsense raises Corrupt or Unsupported; either says where.
    """
    view = as_view(buffer)
    stop = len(view) if end is None else min(end, len(view))
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    at = start
    while True:
        rows, at, why = kernel.scan(view, at, stop, position, table)
        for t in range(0, rows * kernel.STRIDE, kernel.STRIDE):
            where, size = table[t + kernel.POSITION], table[t + kernel.SIZE]
            kind = DefaultBatch if table[t + kernel.MAGIC] == 2 else LegacyBatch
            yield kind(view, where - position, size, where)
        if why == kernel.AT_END:
            return
        if why != kernel.TABLE_FULL:
            raise framing_error(view, at, stop, why, position + at)


def framing_error(view: memoryview, at: int, end: int, why: int, position: int) -> BadData:
    """What is wrong with the framing at `at`, where `kernel.scan` stopped."""
    left = end - at
    if left < 12:
        return Truncated(f"{left} bytes are left, too few for a batch", position=position)
    offset = int.from_bytes(view[at : at + 8], "big", signed=True)
    size = int.from_bytes(view[at + 8 : at + 12], "big", signed=True)
    if why == kernel.BAD_MAGIC:
        return Unsupported(
            f"batches of format {view[at + 16]} are not known", position=position, offset=offset
        )
    if why == kernel.BAD_LENGTH:
        hint = None
        if not any(view[at : min(end, at + 64)]):
            hint = "zeros: the tail of a preallocated file?"
        return Corrupt(
            f"a batch with a length of {size}, too small for its header",
            position=position,
            offset=offset,
            hint=hint,
        )
    return Truncated(
        f"a batch of {size + 12:,} bytes where {left:,} are left", position=position, offset=offset
    )
