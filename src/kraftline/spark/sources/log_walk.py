"""How far a partition's log has come, and which transactions are open there: by batch headers.

A walk can be continued as the log grows: only what is new is looked at. It never passes a batch
that is not all there: one that is cut off by the end of the file, or whose checksum is not right
yet, though its length is (the file may be preallocated).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from kraftline.errors import BadData
from kraftline.records.batch import DefaultBatch
from kraftline.records.control import ControlType, type_of
from kraftline.records.kernel import active as kernel
from kraftline.spark.inputs import InputFile
from kraftline.spark.sources.segment_logs import PartitionLog, on_disk
from kraftline.storage.segment import Damage, Run, SegmentReader, TailKind
from kraftline.storage.txn_index import AbortedTxn

_WINDOW: Final = 2 * 1024 * 1024
_ROWS: Final = 512
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20


class _Header(NamedTuple):
    position: int
    size: int
    magic: int
    attributes: int
    base_offset: int
    last_offset_delta: int
    producer_id: int


_FIELDS: Final = (
    kernel.POSITION,
    kernel.SIZE,
    kernel.MAGIC,
    kernel.ATTRIBUTES,
    kernel.BASE_OFFSET,
    kernel.LAST_OFFSET_DELTA,
    kernel.PRODUCER_ID,
)


class LogWalk:
    """Walks a log from an offset on; `unfinished` are the transactions that are open there.

    `end_offset` is the offset after the last whole batch, `aborted` what was aborted on the way.
    """

    def __init__(self, start_offset: int, unfinished: dict[int, int] | None = None) -> None:
        self.end_offset = start_offset
        self.aborted: list[AbortedTxn] = []
        self._open = dict(unfinished or {})
        self._segment: int | None = None
        self._position = 0

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest open transaction begins; without any, the end."""
        return min(self._open.values(), default=self.end_offset)

    def is_beyond(self, log: PartitionLog) -> bool:
        """Whether the log was cut, or is another one: it ends before where the walk stands."""
        last = log.segments[-1]
        return self._segment is not None and (last.offset, last.size) < (
            self._segment,
            self._position,
        )

    def advance(self, log: PartitionLog) -> None:
        """Walk on to the end of the log as it is now."""
        for segment in log.segments:
            following = log.end_of(segment)
            if following is not None and following <= self.end_offset:
                continue
            if self._segment is not None and segment.offset < self._segment:
                continue
            if segment.offset != self._segment:
                self._segment, self._position = segment.offset, -1
            with on_disk(segment.path) as path:
                self._through(path, segment)

    def _through(self, path: str, segment: InputFile) -> None:
        with SegmentReader(path, window=_WINDOW, on_damage=_ignore) as reader:
            if self._position > reader.size():
                self._position = -1  # a broker has cut its log: seek again
            if self._position < 0:
                found = 0
                if self.end_offset > segment.offset:
                    sought = reader.position_of_offset(self.end_offset)
                    found = reader.size() if sought is None else sought
                self._position = found
            held: tuple[_Header, bytes] | None = None
            for run in reader.runs(self._position, live=segment.newest):
                for header in _headers(run):
                    if held is not None:
                        self._pass(*held)
                    held = header, _body(run, header)
            if held is not None and (not segment.newest or _is_whole(reader, held[0])):
                self._pass(*held)
            tail = reader.tail
            if not segment.newest and tail is not None and tail.kind is not TailKind.PARTIAL:
                self._position = tail.position

    def _pass(self, header: _Header, body: bytes) -> None:
        self._position = header.position + header.size
        last_offset = header.base_offset + header.last_offset_delta
        self.end_offset = max(self.end_offset, last_offset + 1)
        if header.magic != 2 or not header.attributes & _TRANSACTIONAL:
            return
        if not header.attributes & _CONTROL:
            self._open.setdefault(header.producer_id, header.base_offset)
            return
        first = self._open.pop(header.producer_id, None)
        if first is not None and _is_abort(body, header):
            self.aborted.append(
                AbortedTxn(header.producer_id, first, last_offset, self.last_stable_offset)
            )


def _headers(run: Run) -> Iterator[_Header]:
    view = memoryview(run.buffer)
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    at, why = run.start, kernel.TABLE_FULL
    while why == kernel.TABLE_FULL:
        rows, at, why = kernel.scan(view, at, run.end, run.position - run.start, table)
        filled = table[: rows * kernel.STRIDE]
        columns = (filled[field :: kernel.STRIDE] for field in _FIELDS)
        yield from map(_Header._make, zip(*columns, strict=True))


def _body(run: Run, header: _Header) -> bytes:
    """The bytes of a control batch, the only one that is looked into."""
    if not header.attributes & _CONTROL:
        return b""
    start = header.position - run.position + run.start
    return bytes(run.buffer[start : start + header.size])


def _is_abort(body: bytes, header: _Header) -> bool:
    try:
        records = DefaultBatch(memoryview(body), 0, len(body), header.position).records()
        return any(type_of(record) is ControlType.ABORT for record in records)
    except BadData:
        return False  # the task that reads there tells of it


def _is_whole(reader: SegmentReader, header: _Header) -> bool:
    """Whether the last batch of a log has its checksum; only that one can be on its way."""
    end = header.position + header.size
    return any(True for _ in reader.batches(header.position, end))


def _ignore(damage: Damage) -> None:
    """Walking passes over damage: the task that reads there tells of it."""
