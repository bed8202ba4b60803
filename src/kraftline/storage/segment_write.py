"""Write a segment as Kafka would have: the `.log`, and the two indexes that go with it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kraftline.errors import Corrupt, NotRepresentable
from kraftline.storage.batch_search import HEADER, OVERHEAD, Frame, frame_at, implausible
from kraftline.storage.files import Path, sync_directory, write_aside
from kraftline.storage.index_builder import INDEX_INTERVAL, IndexBuilder
from kraftline.storage.names import FileKind, base_offset_of
from kraftline.storage.segment import SegmentReader


def rebuild_indexes(
    log: Path | SegmentReader,
    *,
    base_offset: int | None = None,
    interval: int = INDEX_INTERVAL,
    closed: bool = True,
) -> tuple[bytes, bytes]:
    """The `.index` and `.timeindex` that belong to a `.log`; `closed` as after a roll or stop."""
    if not isinstance(log, SegmentReader):
        with SegmentReader(log) as reader:
            return rebuild_indexes(
                reader, base_offset=base_offset, interval=interval, closed=closed
            )
    builder = IndexBuilder(log.base_offset if base_offset is None else base_offset, interval)
    for frame in log.frames():
        builder.add(frame.position, frame.last_offset, frame.max_timestamp)
    if closed:
        builder.close()
    return builder.offset_index(), builder.time_index()


def write_segment(
    path: Path,
    batches: Iterable[bytes | bytearray | memoryview],
    *,
    interval: int = INDEX_INTERVAL,
) -> int:
    """Write `.log`, `.index` and `.timeindex`; returns the next offset.

    Each item is one or more whole batches with their final offsets. The segment must not be
    there yet.
    """
    target = os.fspath(path)
    base_offset = base_offset_of(target)
    stem, suffix = os.path.splitext(target)
    if base_offset is None or suffix != FileKind.LOG.value:
        raise NotRepresentable(f"{target}: a segment's name is 20 digits and .log")
    builder = IndexBuilder(base_offset, interval)
    position = next_offset = 0
    with open(target, "xb") as file:
        for item in batches:
            for frame in _frames(memoryview(item), position):
                builder.add(frame.position, frame.last_offset, frame.max_timestamp)
                next_offset = frame.last_offset + 1
            position += file.write(item)
        file.flush()
        os.fsync(file.fileno())
    builder.close()
    write_aside(stem + FileKind.OFFSET_INDEX.value, builder.offset_index())
    write_aside(stem + FileKind.TIME_INDEX.value, builder.time_index())
    sync_directory(os.path.dirname(target) or ".")
    return max(next_offset, base_offset)


def _frames(data: memoryview, position: int) -> Iterable[Frame]:
    at = 0
    while at < len(data):
        if len(data) - at < HEADER.size:
            raise Corrupt("bytes that are no whole batch", position=position + at)
        base_offset, length, _, magic = HEADER.unpack_from(data, at)
        reason = implausible(base_offset, length, magic)
        if reason is None and at + OVERHEAD + length > len(data):
            reason = "a batch that is not whole"
        if reason is not None:
            raise Corrupt(reason, position=position + at)
        frame = frame_at(data, at, position + at)
        yield frame
        at += frame.size
