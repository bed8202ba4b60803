"""Offsets and times of a segment without reading it: its first header, and a short look at its
end from where the last index entry points."""

from __future__ import annotations

import os

import msgspec

from kraftline.errors import KraftlineError, NotKafka
from kraftline.storage import offset_index, time_index
from kraftline.storage.batch_search import TO_MAGIC, Frame, frame_at, implausible, read_header
from kraftline.storage.files import unreadable
from kraftline.storage.names import FileKind
from kraftline.storage.partition_dir import Segment
from kraftline.storage.segment import Damage, SegmentReader, TailKind

_WINDOW = 64 * 1024
_HEADER = 61
_DELETE_HORIZON = 0x40
_APPEND_TIME = 0x08
_CODEC = 0x07
_NO_TIMESTAMP = -1


class SegmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A segment from outside. Offsets and times are None where no batch is.

    `end_offset` is the offset after the last one; `tail` says how the file ends: complete,
    partial (a batch is being written, or was cut) or zeros (preallocated).
    """

    file: str
    base_offset: int
    size: int
    first_offset: int | None = None
    end_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    tail: str = TailKind.COMPLETE.value
    indexes: tuple[str, ...] = ()
    damage: str | None = None


def probe_segment(segment: Segment) -> SegmentInfo:
    """Look at both ends of a segment. NotKafka where it cannot be opened."""
    indexes = tuple(companion.kind.value.removeprefix(".") for companion in segment.companions)
    empty = SegmentInfo(
        file=segment.path, base_offset=segment.base_offset, size=segment.size, indexes=indexes
    )
    if segment.size == 0:
        return empty
    first = first_batch(segment.path)
    start = last_position(_companion(segment, FileKind.OFFSET_INDEX), segment.size)
    damages: list[Damage] = []
    last, newest, tail = _end(segment.path, start, damages)
    if damages and start:  # the index may lead astray: look at all of it
        damages = []
        last, newest, tail = _end(segment.path, 0, damages)
    newest = max(newest, last_time(_companion(segment, FileKind.TIME_INDEX)))
    return msgspec.structs.replace(
        empty,
        first_offset=None if first is None else first[0],
        end_offset=None if last is None else last.last_offset + 1,
        first_timestamp=None if first is None else first[1],
        last_timestamp=None if newest == _NO_TIMESTAMP else newest,
        tail=tail,
        damage=damages[0].reason if damages else None,
    )


def _companion(segment: Segment, kind: FileKind) -> str | None:
    return next((c.path for c in segment.companions if c.kind is kind and c.size), None)


def first_batch(path: str) -> tuple[int, int | None] | None:
    """Offset and time of the first batch; None where none is whole."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        header = read_header(fd, 0)
        if header is None or implausible(*header) is not None:
            return None
        head = os.pread(fd, _HEADER, 0).ljust(_HEADER, b"\0")
    finally:
        os.close(fd)
    frame = frame_at(head, 0, 0)
    timestamp, offset = frame.max_timestamp, frame.base_offset
    if frame.magic == 2 and not head[22] & (_DELETE_HORIZON | _APPEND_TIME):
        base = int.from_bytes(head[27:35], "big", signed=True)
        timestamp = base if base != _NO_TIMESTAMP else timestamp
    elif frame.magic < 2 and head[17] & _CODEC:
        offset = _first_inside(path, offset)
    return offset, None if timestamp == _NO_TIMESTAMP else timestamp


def _first_inside(path: str, otherwise: int) -> int:
    """The first offset in a compressed message set, whose header has only its last."""
    try:
        with SegmentReader(path, window=_WINDOW) as reader:
            for batch, _ in reader.batches(end=1, check=False):
                return batch.base_offset
    except KraftlineError:
        pass
    return otherwise


def _end(path: str, start: int, damages: list[Damage]) -> tuple[Frame | None, int, str]:
    """The last batch from a position on, the newest time there, and how the file ends."""
    last, newest = None, _NO_TIMESTAMP
    with SegmentReader(path, on_damage=damages.append) as reader:
        for frame in reader.frames(start, window=_WINDOW):
            last = frame
            newest = max(newest, frame.max_timestamp)
        tail = reader.tail
    return last, newest, (TailKind.COMPLETE if tail is None else tail.kind).value


def last_position(path: str | None, limit: int) -> int:
    """Where the last entry of an offset index points; 0 where that is no help."""
    entry = _last_entry(path, offset_index.ENTRY)
    position = int.from_bytes(entry[4:], "big", signed=True) if entry else 0
    return position if 0 <= position < limit - TO_MAGIC else 0


def last_time(path: str | None) -> int:
    """The time in the last entry of a time index; -1 where there is none."""
    entry = _last_entry(path, time_index.ENTRY)
    return int.from_bytes(entry[:8], "big", signed=True) if entry else _NO_TIMESTAMP


def _last_entry(path: str | None, size: int) -> bytes | None:
    """The last entry before a tail of zeros, found by halving: indexes may be 10 MB of zeros."""
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        count = os.fstat(fd).st_size // size
        # The end first: most indexes have no zeros.
        low, high, guess = 0, count, count - 1
        found = None
        while low < high:
            entry = os.pread(fd, size, guess * size)
            if any(entry):
                found, low = entry, guess + 1
            else:
                high = guess
            guess = (low + high) // 2
    except OSError:
        return None
    finally:
        os.close(fd)
    return found


def try_segment(segment: Segment) -> SegmentInfo:
    """Like `probe_segment`, with the reason in `damage` where it cannot be read at all."""
    try:
        return probe_segment(segment)
    except NotKafka as error:
        reason = str(error).removeprefix(f"{segment.path}: ")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    return SegmentInfo(
        file=segment.path, base_offset=segment.base_offset, size=segment.size, damage=reason
    )
