"""The batches of a piece, checked and made ready, without those that nobody asked for.

Damage goes to `on_damage`, with file, position and reason; never past it in silence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from msgspec.structs import replace

from kraftline.errors import BadData
from kraftline.records.compression import Scratch
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Run, prepare
from kraftline.records.selection import header_column, only
from kraftline.spark.sources.segment_logs import on_disk
from kraftline.spark.sources.splits import Bounds, Piece
from kraftline.storage import batch_search
from kraftline.storage.segment import Damage, SegmentReader, TailKind
from kraftline.storage.txn_index import AbortedTxn

WINDOW: Final = 2 * 1024 * 1024  # stays in a core's cache from reading to columns
_BUDGET: Final = 4 * 1024 * 1024  # uncompressed bytes that go into one record batch
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20

OnDamage: TypeAlias = Callable[[Damage], None]


def runs_of(piece: Piece, on_damage: OnDamage) -> Iterator[Run]:
    """Runs of batches of the piece; each is good until the next one is asked for."""
    with on_disk(piece.path, piece.start, piece.end) as path:
        yield from _runs(piece, path, on_damage)


def _runs(piece: Piece, path: str, on_damage: OnDamage) -> Iterator[Run]:
    choose = BatchChoice(piece)
    scratch = Scratch()

    def framing(damage: Damage) -> None:
        on_damage(replace(damage, file=piece.path))

    with SegmentReader(path, window=WINDOW, on_damage=framing) as reader:

        def inside(error: BadData) -> None:
            size = _size_at(reader.path, error.position)
            if piece.may_grow and _is_arriving(reader.path, error.position, size):
                return
            on_damage(_damage(piece, error, size))

        for buffer, start, end, position in reader.runs(piece.start, piece.end):
            at = start
            while at < end:
                run = prepare(
                    buffer,
                    at,
                    end,
                    position=position - start,
                    on_error=inside,
                    scratch=scratch,
                    budget=_BUDGET,
                )
                at = run.end
                run = choose(run)
                if run.records:
                    yield run
            scratch.shrink(8 * _BUDGET)
        tail = reader.tail
        if tail is not None and tail.kind is TailKind.PARTIAL and not piece.may_grow:
            reader.report(tail.position, tail.length, "the segment ends within a batch")


class BatchChoice:
    """Chooses batches by their headers: what no bound excludes and no isolation hides."""

    def __init__(self, piece: Piece) -> None:
        self._bounds = piece.bounds
        self._committed = piece.committed
        self._everything = piece.bounds == Bounds() and not piece.committed
        self._aborted: dict[int, tuple[list[int], list[int]]] = {}
        for transaction in sorted(piece.aborted, key=_first_offset):
            firsts, lasts = self._aborted.setdefault(transaction.producer_id, ([], []))
            firsts.append(transaction.first_offset)
            lasts.append(transaction.last_offset)

    def __call__(self, run: Run) -> Run:
        if self._everything or not run.groups:
            return run
        rows = run.groups[-1].last
        wanted = [True] * rows
        self._within_bounds(run, wanted)
        if self._committed:
            self._hide(run, wanted)
        return run if all(wanted) else only(run, wanted)

    def _within_bounds(self, run: Run, wanted: list[bool]) -> None:
        bounds = self._bounds
        if bounds == Bounds():
            return
        columns = (kernel.BASE_OFFSET, kernel.LAST_OFFSET_DELTA, kernel.MAX_TIMESTAMP)
        headers = zip(*(header_column(run, column) for column in columns), strict=True)
        for row, (base, delta, latest) in enumerate(islice(headers, len(wanted))):
            wanted[row] = (
                base + delta >= bounds.start_offset
                and (bounds.end_offset is None or base < bounds.end_offset)
                and (bounds.start_time is None or latest >= bounds.start_time)
            )

    def _hide(self, run: Run, wanted: list[bool]) -> None:
        attributes = header_column(run, kernel.ATTRIBUTES)
        if not any(bits & (_CONTROL | _TRANSACTIONAL) for bits in set(attributes)):
            return
        columns = (kernel.MAGIC, kernel.ATTRIBUTES, kernel.PRODUCER_ID, kernel.BASE_OFFSET)
        headers = zip(*(header_column(run, column) for column in columns), strict=True)
        for row, (magic, bits, producer_id, base) in enumerate(islice(headers, len(wanted))):
            if magic == 2 and (
                bits & _CONTROL or (bits & _TRANSACTIONAL and self.is_aborted(producer_id, base))
            ):
                wanted[row] = False

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        firsts, lasts = self._aborted.get(producer_id, ((), ()))
        slot = bisect_right(firsts, offset) - 1
        return slot >= 0 and offset <= lasts[slot]


def _first_offset(transaction: AbortedTxn) -> int:
    return transaction.first_offset


def _damage(piece: Piece, error: BadData, size: int) -> Damage:
    position = error.position if error.position is not None else piece.start
    return Damage(
        file=piece.path, position=position, length=size, reason=error.reason, offset=error.offset
    )


def _size_at(path: str, position: int | None) -> int:
    """How long the batch at a position is; its header was readable, or it would not be one."""
    if position is None:
        return 0
    with open(path, "rb", buffering=0) as file:
        header = batch_search.read_header(file.fileno(), position)
    return 0 if header is None else batch_search.OVERHEAD + header[1]


def _is_arriving(path: str, position: int | None, size: int) -> bool:
    """Whether a batch that is wrong is the last one before preallocated zeros: a broker may be
    writing it this moment."""
    if position is None:
        return False
    with open(path, "rb", buffering=0) as file:
        limit = file.seek(0, 2)
        end = position + size
        return end < limit and batch_search.zeros_from(file.fileno(), end, limit)
