"""A metadata log in pieces of a bounded size, for whoever replays it or compares two of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from kraftline.errors import BadData
from kraftline.inspect.history.decoding import Progress, Record, decode
from kraftline.inspect.history.transactions import Replay
from kraftline.inspect.history.trouble import Trouble
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.records.control import read_control
from kraftline.records.framing import as_view, batches
from kraftline.records.kernel import active as kernel
from kraftline.schema.types import Message
from kraftline.storage.segment import Damage, SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader

_WINDOW = 1024 * 1024
_ROWS = 1024
_CONTROL = 0x20


class Head(NamedTuple):
    """What says whether two batches are the same: the checksum covers all that is not here."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    size: int
    position: int
    file: str

    def same(self, other: Head) -> bool:
        return self[:5] == other[:5]


class Piece(NamedTuple):
    """Neighbouring batches without a gap: their records that say something, in order, and those of
    control batches."""

    first_offset: int
    next_offset: int
    records: Sequence[Record]
    controls: Sequence[Record]


def read_heads(segments: Sequence[str], progress: Progress | None = None) -> Iterator[Head]:
    """The headers of all sound batches; what is not sound is left out (and told of elsewhere).
    `progress` hears of the bytes that are done."""
    for _, heads in _windows(segments, progress):
        for head, _ in heads:
            yield head


def read_pieces(segments: Sequence[str], progress: Progress | None = None) -> Iterator[Piece]:
    """The records of a log. A batch or a record that cannot be read is a gap between pieces."""
    for data, heads in _windows(segments, progress):
        base = heads[0][0].position if heads else 0
        first = 0
        for at in range(1, len(heads) + 1):
            if at < len(heads) and heads[at][0].base_offset == heads[at - 1][0].last_offset + 1:
                continue
            yield from _split(data, base, heads[first:at])
            first = at


def _split(data: memoryview, base: int, heads: Sequence[tuple[Head, bool]]) -> Iterator[Piece]:
    """One piece, or those between its records that cannot be read."""
    unread: list[Trouble] = []
    records = _records(data, base, heads, unread.append)
    controls = list(_controls(data, base, heads))
    start, end = heads[0][0].base_offset, heads[-1][0].last_offset + 1
    bad = [trouble.offset for trouble in unread]
    for offset in sorted(each for each in bad if each is not None):
        yield Piece(
            start, offset, between(records, start, offset), between(controls, start, offset)
        )
        start = offset + 1
    if None not in bad:
        yield Piece(start, end, between(records, start, end), between(controls, start, end))


def _controls(data: memoryview, base: int, heads: Sequence[tuple[Head, bool]]) -> Iterator[Record]:
    for head, is_control in heads:
        if is_control:
            start = head.position - base
            try:
                for batch in batches(bytes(data[start : start + head.size])):
                    for record in batch.records(check_crc=False):
                        message = read_control(record).message
                        if isinstance(message, Message):
                            yield Record(record.offset, message)
            except BadData:
                continue  # a finding of another check


def _records(
    data: memoryview,
    base: int,
    heads: Sequence[tuple[Head, bool]],
    trouble: Callable[[Trouble], None],
) -> list[Record]:
    records: list[Record] = []
    first = 0
    for at in range(len(heads) + 1):
        # Control batches have no metadata records in them, and bytes in between are damaged.
        if at < len(heads) and not heads[at][1] and (at == first or _touching(heads, at)):
            continue
        if first < at:
            start = heads[first][0].position - base
            end = heads[at - 1][0].position + heads[at - 1][0].size - base
            records += decode(bytes(data[start:end]), trouble)
        first = at + 1 if at < len(heads) and heads[at][1] else at
    return records


def _touching(heads: Sequence[tuple[Head, bool]], at: int) -> bool:
    before = heads[at - 1][0]
    return before.position + before.size == heads[at][0].position


def _windows(
    segments: Sequence[str], progress: Progress | None
) -> Iterator[tuple[memoryview, list[tuple[Head, bool]]]]:
    """Bytes from the first sound batch on, and (header, is a control batch) of each in them."""
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    for path in segments:
        with SegmentReader(path, window=_WINDOW, on_damage=_passed_over) as reader:
            for run in reader.runs():
                view, at = as_view(run.buffer), run.start
                base = run.position - run.start
                heads: list[tuple[Head, bool]] = []
                while at < run.end:
                    rows, at, _ = kernel.scan(view, at, run.end, base, table)
                    if not rows:
                        break
                    heads += _heads(view, base, table, rows, path)
                if heads:
                    yield view[heads[0][0].position - base : run.end], heads
                if progress is not None:
                    progress(run.end - run.start)


def _heads(
    view: memoryview, base: int, table: array[int], rows: int, path: str
) -> Iterator[tuple[Head, bool]]:
    checksum = google_crc32c.value
    for t in range(0, rows * kernel.STRIDE, kernel.STRIDE):
        position, size, offset, crc = table[t], table[t + 1], table[t + 5], table[t + 15]
        start = position - base
        if table[t + 2] != 2:
            continue
        if checksum(bytes(view[start + 21 : start + size])) != crc & 0xFFFFFFFF:
            continue
        head = Head(offset, offset + table[t + 14], table[t + 11], crc, size, position, path)
        yield head, bool(table[t + 3] & _CONTROL)


def between(records: Sequence[Record], start: int, end: int) -> Sequence[Record]:
    """Those with offsets from `start` on and below `end`."""
    first = bisect_left(records, start, key=_offset)
    return records[first : bisect_left(records, end, lo=first, key=_offset)]


def _offset(record: Record) -> int:
    return record.offset


def snapshot_image(path: str) -> MetadataImage:
    """What a snapshot holds; BadData where it is not whole."""
    delta = MetadataDelta(EMPTY)
    replay = Replay(delta, _unheard)
    with SnapshotReader(path) as reader:
        for batch in reader.batches():
            replay.take(decode(bytes(batch.data), _unheard, file=path))
    return delta.apply(Provenance())


def _unheard(trouble: Trouble) -> None:
    """Records that cannot be read are findings of another check."""


def _passed_over(damage: Damage) -> None:
    """So is damage."""
