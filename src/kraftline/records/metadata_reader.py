"""A metadata log or snapshot as a stream of Arrow tables, one per record type, in flat memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from kraftline.errors import BadData, Unsupported
from kraftline.records.batch import DefaultBatch
from kraftline.records.checksums import sound_until
from kraftline.records.chunks import Chunk, Source, decode_file
from kraftline.records.compression import DEFAULT_LIMIT, Scratch
from kraftline.records.framing import batches, framing_error
from kraftline.records.kernel import active as kernel
from kraftline.records.metadata_arrow import MetadataColumns, decode_metadata
from kraftline.records.runs import OnError
from kraftline.records.write import build_batch

CHUNK: Final = 4 * 1024 * 1024
_SCAN_ROWS: Final = 256


def read_metadata(
    source: Source,
    *,
    start: int = 0,
    end: int | None = None,
    on_error: OnError | None = None,
    limit: int = DEFAULT_LIMIT,
    chunk: int = CHUNK,
    threads: int = 1,
) -> Iterator[MetadataColumns]:
    """The records of a file (a path, or an open binary file that can seek) from a batch's start.

    Checksums are compared. What no table can hold is in `aside`: control batches, and records of
    a type or version that is not known, or malformed. Damaged batches are errors; with
    `on_error` they are handed over, in order, and reading goes on where the framing allows.
    """

    def decode(
        piece: Chunk, on_error: OnError | None, _scratch: Scratch
    ) -> Iterator[MetadataColumns]:
        view = memoryview(piece.memory)[: piece.size]
        stop, problem = _framed(view, piece)
        if problem is not None and on_error is None:
            raise problem
        at = 0
        while at < stop:
            sound = sound_until(view, at, stop)
            while at < sound:
                found = decode_metadata(view, at, sound, piece.position + at)
                at = found.end
                yield found
                yield from _unpacked(found, on_error, limit)
            if at < stop:
                at = _unsound(view, at, piece.position, on_error)
        if problem is not None and on_error is not None:
            on_error(problem)

    yield from decode_file(
        source, decode, start=start, end=end, on_error=on_error, chunk=chunk, threads=threads
    )


def _framed(view: memoryview, piece: Chunk) -> tuple[int, BadData | None]:
    """Up to where there are whole batches, and what is wrong behind them, if anything is."""
    table = array("q", bytes(8 * kernel.STRIDE * _SCAN_ROWS))
    at, why = 0, kernel.TABLE_FULL
    while why == kernel.TABLE_FULL:
        _, at, why = kernel.scan(view, at, piece.size, 0, table)
    if why == kernel.AT_END:
        return at, None
    return at, framing_error(view, at, piece.size, why, piece.position + at)


def _unpacked(
    found: MetadataColumns, on_error: OnError | None, limit: int
) -> Iterator[MetadataColumns]:
    """The records of compressed batches: Kafka writes none, but would read them."""
    for row in found.aside:
        if row.reason != "other batch":
            continue
        batch = DefaultBatch(memoryview(row.data), 0, len(row.data), row.position)
        try:
            records = batch.records(check_crc=False, limit=limit)
        except BadData as problem:
            if on_error is None:
                raise
            on_error(problem)
            continue
        plain = build_batch(
            records,
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
            is_control=batch.is_control,
        )
        yield decode_metadata(plain, file_position=batch.position)


def _unsound(view: memoryview, at: int, base: int, on_error: OnError | None) -> int:
    """Report the batch whose checksum is wrong; where the next one starts."""
    batch = next(batches(view, at, position=base))
    try:
        batch.check()
        raise Unsupported(
            f"a batch of format {batch.magic} in a metadata log",
            position=batch.position,
            offset=batch.last_offset,
        )
    except BadData as problem:
        if on_error is None:
            raise
        on_error(problem)
    return at + batch.size_in_bytes
