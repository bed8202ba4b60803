"""A segment file, read in bounded windows: it may be huge, damaged, and growing under us.

Never mapped into memory: a live file may be cut, which would kill the process. What cannot be
read is told to `on_damage`, never skipped in silence; without one, the first damage is raised.
A half-written last batch is no damage: it is the `tail`, and may be whole a moment later.
"""

from __future__ import annotations

import enum
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import msgspec

from kraftline.errors import BadData, Corrupt, KraftlineError, TooLarge
from kraftline.records.batch import Batch
from kraftline.records.framing import batches as split_batches
from kraftline.records.kernel import active as kernel
from kraftline.storage import batch_search, offset_index, time_index
from kraftline.storage.batch_search import (
    HEADER,
    OVERHEAD,
    SEARCH_BUDGET,
    TO_MAGIC,
    BatchSearch,
    Frame,
)
from kraftline.storage.files import Path, unreadable
from kraftline.storage.names import FileKind, base_offset_of

WINDOW = 8 * 1024 * 1024
_SEEK_WINDOW = 64 * 1024
# Kafka's socket.request.max.bytes: nothing larger can have come in over the network.
MAX_BATCH_BYTES = 104_857_600
_HALF = "half"
# Batches that the kernel passes over in one call.
_ROWS = 512
_Index = TypeVar("_Index")


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that were passed over. `offset` is what is known: of the batch, where its header can
    be read, else the first one expected there."""

    file: str
    position: int
    length: int
    reason: str
    offset: int | None = None
    too_large: bool = False

    def error(self) -> BadData:
        kind = TooLarge if self.too_large else Corrupt
        return kind(self.reason, file=self.file, position=self.position, offset=self.offset)


class TailKind(enum.Enum):
    """How a file ends: at a batch's end, within a batch, or in preallocated zeros."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    ZEROS = "zeros"


class Tail(msgspec.Struct, frozen=True):
    """Where the next batch will be, and how many bytes are there already."""

    kind: TailKind
    position: int
    length: int


class Run(NamedTuple):
    """Whole batches back to back in buffer[start:end]; `position` is where start is in the file."""

    buffer: bytes | memoryview
    start: int
    end: int
    position: int


class SegmentReader:
    """Reads one `.log` file (or a snapshot, which has the same shape). A context manager.

    After a reading has come to the end, `tail` says how the file ended at that moment.
    """

    def __init__(
        self,
        path: Path,
        *,
        window: int = WINDOW,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        on_damage: Callable[[Damage], None] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.base_offset = base_offset_of(path) or 0
        self.tail: Tail | None = None
        self._window = max(window, 4096)
        self._max_batch = max_batch_bytes
        self.on_damage = on_damage
        self._buffer: memoryview | None = None
        self._table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._seeker = BatchSearch(self._fd, max_batch_bytes)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def size(self) -> int:
        """The file's size now."""
        return os.fstat(self._fd).st_size

    def batches(
        self, start: int = 0, end: int | None = None, *, check: bool = True
    ) -> Iterator[tuple[Batch, int]]:
        """Batches with their file positions, from a batch boundary on; those that begin before
        `end`. With `check`, one whose checksum is wrong is damage. Batches may be kept."""
        for run in self.runs(start, end, keep=True):
            base = run.position - run.start
            for batch in split_batches(run.buffer, run.start, run.end, position=base):
                position = batch.position
                if check:
                    try:
                        batch.check()
                    except BadData as error:
                        size = batch.size_in_bytes
                        if self._half_written(position, size):
                            return
                        self.report(position, size, error.reason, error.offset)
                        continue
                yield batch, position

    def runs(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        keep: bool = False,
        live: bool = False,
        window: int | None = None,
    ) -> Iterator[Run]:
        """Runs of whole batches, unchecked, for a decoder that takes many in one call.

        A run's buffer holds until the next one is asked for, unless `keep`. `live` says that a
        batch which is not all there is still being written: nothing is searched behind it.
        """
        limit = self.size()
        # Enough to sum up every batch once, and to fail now and then.
        self._seeker.budget = SEARCH_BUDGET + limit
        stop = limit if end is None else min(end, limit)
        window = window or self._window
        position, need, legacy = start, 0, True
        while position < stop:
            wanted = min(max(window, need), limit - position)
            buffer = self._read(position, wanted, keep)
            if len(buffer) < wanted:  # the file was cut meanwhile
                limit = position + len(buffer)
                stop = min(stop, limit)
            at, previous = self._leap(buffer, min(len(buffer), stop - position))
            need, verdict = 0, None
            while position + at < stop:
                left = limit - position - at
                if left < TO_MAGIC:
                    verdict = _HALF
                    break
                base_offset, size, _, magic = HEADER.unpack_from(buffer, at)
                verdict = batch_search.implausible(base_offset, size, magic)
                size += OVERHEAD
                if verdict is not None:
                    break
                if size > left:
                    verdict = _HALF
                    break
                if size > self._max_batch:
                    verdict = f"a batch of {size} bytes, above the limit of {self._max_batch}"
                    break
                # The next header must be in sight too before this batch is passed on.
                if at + size + min(TO_MAGIC, left - size) > len(buffer):
                    need = size + TO_MAGIC
                    break
                previous, at, legacy = at, at + size, magic != 2
            if verdict is None:
                if at:
                    yield Run(buffer, 0, at, position)
                position += at
                continue
            before = None
            if previous is not None:
                before = batch_search.frame_at(buffer, previous, position + previous)
            seen = None
            if at + TO_MAGIC <= len(buffer):
                base_offset, size, _, magic = HEADER.unpack_from(buffer, at)
                seen = (base_offset, size, magic)
            trouble = _Trouble(position + at, before, limit, verdict, legacy, live, seen)
            good, resume, damage = self._search(trouble)
            if good > position:
                yield Run(buffer, 0, good - position, position)
            if damage is not None:  # only now: it may be raised, and what came before is good
                self._tell(damage)
            if resume is None:
                return
            position = resume
        if position >= limit:
            self.tail = Tail(TailKind.COMPLETE, position, 0)

    def frames(self, start: int = 0, *, window: int | None = None) -> Iterator[Frame]:
        """Batches seen from outside: positions, sizes, offsets and times."""
        for run in self.runs(start, window=window):
            at = run.start
            while at < run.end:
                frame = batch_search.frame_at(run.buffer, at, run.position + at - run.start)
                yield frame
                at += frame.size

    def position_of_offset(self, offset: int) -> int | None:
        """Where the first batch is that ends at or after the offset; None if there is none."""
        for frame in self.frames(self._hint(offset), window=_SEEK_WINDOW):
            if frame.last_offset >= offset:
                return frame.position
        return None

    def position_of_time(self, timestamp: int) -> int | None:
        """Where the first batch is that has a record at or after the time (ms); or None."""
        for frame in self.frames(self._time_hint(timestamp), window=_SEEK_WINDOW):
            if frame.max_timestamp >= timestamp:
                return frame.position
        return None

    def boundary(self, position: int) -> int:
        """The first batch boundary at or after a position, so that a file can be read in parts."""
        return self.boundaries([position])[0]

    def boundaries(self, positions: Iterable[int]) -> list[int]:
        index = self._companion(FileKind.OFFSET_INDEX, offset_index.read_offset_index)
        return [self._boundary(position, index) for position in positions]

    def _boundary(self, position: int, index: offset_index.OffsetIndex | None) -> int:
        start = 0
        if index is not None:
            slot = bisect_right(index.positions, position) - 1
            if slot >= 0 and self._is_batch(index.positions[slot]):
                start = index.positions[slot]
        for frame in self.frames(start, window=_SEEK_WINDOW):
            if frame.position >= position:
                return frame.position
        return self.size()

    def _hint(self, offset: int) -> int:
        """A position at or before the offset's batch, by the index; 0 where that is no help."""
        index = self._companion(FileKind.OFFSET_INDEX, offset_index.read_offset_index)
        if index is None:
            return 0
        position = offset_index.lookup(index, offset).position
        header = batch_search.read_header(self._fd, position)
        # A stale index may lead too far, and then the batch would be missed.
        if header is None or header[0] > offset or not self._is_batch(position):
            return 0
        return position

    def _time_hint(self, timestamp: int) -> int:
        """A position with nothing as young before it, by the indexes; 0 where that is no help."""
        index = self._companion(FileKind.TIME_INDEX, time_index.read_time_index)
        if index is None:
            return 0
        entry = time_index.lookup(index, timestamp)
        start = self._hint(entry.offset)
        if start:
            # The time is that of the batch; where it is not, the entry would hide what lies before.
            for frame in self.frames(start, window=_SEEK_WINDOW):
                if frame.last_offset >= entry.offset:
                    return start if frame.max_timestamp == entry.timestamp else 0
        return 0

    def _companion(self, kind: FileKind, read: Callable[[str], _Index]) -> _Index | None:
        stem, suffix = os.path.splitext(self.path)
        if suffix != FileKind.LOG.value:
            return None
        try:
            return read(stem + kind.value)
        except KraftlineError:
            return None  # an index only saves time

    def _is_batch(self, position: int) -> bool:
        return self._seeker.is_batch(position, self.size())

    def _read(self, position: int, length: int, keep: bool) -> bytes | memoryview:
        if keep:
            return os.pread(self._fd, length, position)
        # One buffer for all windows: memory that is warm takes a copy many times faster.
        if self._buffer is None or len(self._buffer) < length:
            self._buffer = memoryview(bytearray(length))
        filled = 0
        while filled < length:
            count = os.preadv(self._fd, [self._buffer[filled:length]], position + filled)
            if count == 0:
                break
            filled += count
        return self._buffer[:filled]

    def _leap(self, buffer: bytes | memoryview, end: int) -> tuple[int, int | None]:
        """Let the kernel pass over the batches that are in order: where the last of them begins,
        from where on they are looked at closely, and the one before it."""
        view = memoryview(buffer)
        last: int | None = None
        previous: int | None = None
        at = 0
        while True:
            rows, at, why = kernel.scan(view, at, end, 0, self._table)
            filled = self._table[: rows * kernel.STRIDE]
            if rows:
                if (
                    min(filled[kernel.BASE_OFFSET :: kernel.STRIDE]) < 0
                    or max(filled[kernel.SIZE :: kernel.STRIDE]) > self._max_batch
                ):
                    return last or 0, previous
                starts = filled[kernel.POSITION :: kernel.STRIDE]
                previous = starts[-2] if rows > 1 else last
                last = starts[-1]
            if why != kernel.TABLE_FULL:
                return last or 0, previous

    def _search(self, trouble: _Trouble) -> tuple[int, int | None, Damage | None]:
        """Up to where batches are good, where to go on (None: nowhere, the tail is set), and what
        is between."""
        at, before, limit = trouble.position, trouble.before, trouble.limit
        half = trouble.reason is _HALF
        if before is not None and not trouble.live and not self._is_batch(before.position):
            # The batch before may be the liar: with a wrong length it led us here.
            found = self._find(before.position + 1, trouble)
            if found is not None:
                reason = f"its checksum is wrong, and behind its length: {trouble.reason}"
                if half:
                    reason = "its checksum is wrong, and its length leads past the next batch"
                length = found - before.position
                damage = self._damage(before.position, length, reason, before.base_offset)
                return before.position, found, damage
        offset = None if before is None else before.last_offset + 1
        header = batch_search.read_header(self._fd, at)
        if header is not None and header[1] == 0 and batch_search.zeros_from(self._fd, at, limit):
            self.tail = Tail(TailKind.ZEROS, at, limit - at)
            return at, None, None
        if trouble.seen is not None and batch_search.read_header(self._fd, at) != trouble.seen:
            return at, at, None  # a broker has written there since we read: look again
        if half:
            found = None if trouble.live else self._find(at + 1, trouble)
            if found is None:
                self.tail = Tail(TailKind.PARTIAL, at, limit - at)
                return at, None, None
            reason = "its length leads past the end of the file, but other batches follow"
            return at, found, self._damage(at, found - at, reason, offset)
        assert header is not None  # only the half-written have none
        end = at + OVERHEAD + header[1]
        whole = header[1] > 0 and end <= limit and (end == limit or self._is_batch(end))
        too_large = whole and batch_search.implausible(*header) is None
        resume = end if whole else self._find(at + 1, trouble)
        upto = limit if resume is None else resume
        damage = self._damage(at, upto - at, trouble.reason, offset, too_large=too_large)
        if upto == limit:
            self.tail = Tail(TailKind.COMPLETE, limit, 0)
            return at, None, damage
        return at, upto, damage

    def _find(self, start: int, trouble: _Trouble) -> int | None:
        return self._seeker.find(start, trouble.limit, legacy=trouble.legacy)

    def _half_written(self, position: int, size: int) -> bool:
        """Whether a batch with a wrong checksum is the last one before preallocated zeros: its
        bytes need not all have arrived."""
        end, limit = position + size, self.size()
        if end >= limit or not batch_search.zeros_from(self._fd, end, limit):
            return False
        self.tail = Tail(TailKind.PARTIAL, position, size)
        return True

    def report(self, position: int, length: int, reason: str, offset: int | None = None) -> None:
        """Tell of damage, or raise it where nobody listens."""
        self._tell(self._damage(position, length, reason, offset))

    def _damage(
        self,
        position: int,
        length: int,
        reason: str,
        offset: int | None,
        *,
        too_large: bool = False,
    ) -> Damage:
        return Damage(
            file=self.path,
            position=position,
            length=length,
            reason=reason,
            offset=offset,
            too_large=too_large,
        )

    def _tell(self, damage: Damage) -> None:
        if self.on_damage is None:
            raise damage.error()
        self.on_damage(damage)


class _Trouble(NamedTuple):
    """A place where no batch of Kafka's is, and what is known around it."""

    position: int
    before: Frame | None
    limit: int
    reason: str
    legacy: bool
    live: bool
    seen: tuple[int, int, int] | None
