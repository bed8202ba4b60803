"""Follow a partition's log as a broker writes it: wait for growth, go on to the next segment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from kraftline.errors import BadData, NotKafka
from kraftline.records.framing import batches
from kraftline.storage.files import Path, vanished
from kraftline.storage.names import format_segment_file
from kraftline.storage.partition_dir import base_offsets
from kraftline.storage.segment import Damage, Run, SegmentReader, Tail, TailKind


class Followed(NamedTuple):
    """A run of batches and the segment that it is in; the buffer holds until the next one."""

    base_offset: int
    run: Run


def follow(
    directory: Path,
    start_offset: int = 0,
    *,
    wait: Callable[[], bool] | None = None,
    on_damage: Callable[[Damage], None] | None = None,
) -> Iterator[Followed]:
    """Runs of batches from the one that holds `start_offset` on, without an end.

    `wait` is called whenever nothing is left to read; it sleeps as long as it likes and says
    whether to go on (default: a tenth of a second, always). Where `start_offset` is gone already,
    following starts at the oldest segment.
    """
    wait = wait or _nap
    folder = os.fspath(directory)
    base = None
    while True:
        base = _segment_for(folder, start_offset) if base is None else base
        if base is None:
            if not wait():
                return
            continue
        try:
            path = os.path.join(folder, format_segment_file(base))
            reader = SegmentReader(path, on_damage=on_damage)
        except NotKafka as error:
            if not vanished(error):
                raise
            base = None  # retention was faster: the oldest segment is another one now
            continue
        with reader:
            following = yield from _to_its_end(reader, folder, start_offset, wait)
        if following is None:
            return
        base = start_offset = following


def _to_its_end(
    reader: SegmentReader,
    folder: str,
    start_offset: int,
    wait: Callable[[], bool],
) -> Generator[Followed, None, int | None]:
    """Follow one segment until another begins, whose base offset is returned."""
    base = reader.base_offset
    found = reader.position_of_offset(start_offset) if start_offset > base else 0
    position = reader.size() if found is None else found
    while True:
        # Asked for before reading: a segment gets its last bytes before the next one begins.
        following = _segment_after(folder, base)
        size = reader.size()
        if size < position:
            reader.report(
                size, position - size, "the file was cut while it was read: its end was taken back"
            )
            position = size
        before = position
        tail = None
        for run in reader.runs(position, live=following is None):
            end = run.end if following is not None else _arrived(run, reader.tail)
            if end > run.start:
                yield Followed(base, run._replace(end=end))
            position = run.position + end - run.start
            if end < run.end:
                break
        else:
            tail = reader.tail
        if tail is not None:
            position = max(position, tail.position)
        if position > before:
            continue
        if following is not None:
            if tail is not None and tail.kind is TailKind.PARTIAL:
                reader.report(tail.position, tail.length, "the segment ends within a batch")
            return following
        if not wait():
            return None


def _arrived(run: Run, tail: Tail | None) -> int:
    """Where the batches of a run end that are all there. Before preallocated zeros the bytes of the
    last one may still be on their way, and then its checksum is wrong."""
    end = run.position + run.end - run.start
    if tail is None or tail.kind is not TailKind.ZEROS or tail.position != end:
        return run.end
    *_, last = batches(run.buffer, run.start, run.end)
    try:
        last.check()
    except BadData:
        return last.start
    return run.end


def _nap() -> bool:
    time.sleep(0.1)
    return True


def _segment_for(folder: str, offset: int) -> int | None:
    bases = base_offsets(folder)
    return max((base for base in bases if base <= offset), default=bases[0] if bases else None)


def _segment_after(folder: str, base: int) -> int | None:
    return min((other for other in base_offsets(folder) if other > base), default=None)
