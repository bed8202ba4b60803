"""A file of batches as a stream of Arrow record batches, in flat memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kraftline.records.arrow import Alike, columns_of
from kraftline.records.chunks import Chunk, Source, decode_file
from kraftline.records.compression import DEFAULT_LIMIT, Scratch
from kraftline.records.runs import OnError, measure, prepare

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK: Final = 2 * 1024 * 1024  # small enough to stay in a core's cache from reading to columns
_BUDGET: Final = 4 * 1024 * 1024  # uncompressed bytes that go into one record batch


def read_columns(
    source: Source,
    *,
    start: int = 0,
    end: int | None = None,
    columns: Sequence[str] | None = None,
    check_crc: bool = True,
    on_error: OnError | None = None,
    limit: int = DEFAULT_LIMIT,
    chunk: int = CHUNK,
    threads: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The records of a file (a path, or an open binary file that can seek) from a batch's start.

    Errors say the position in the file; with `on_error` they are handed over, in order and on
    the caller's thread, and reading goes on with the next batch where the framing allows.
    """

    alike = Alike(columns)

    def decode(
        piece: Chunk, on_error: OnError | None, scratch: Scratch
    ) -> Iterator[pa.RecordBatch]:
        at = 0
        view = memoryview(piece.memory)[: piece.size]
        while at < piece.size:
            run = prepare(
                view,
                at,
                position=piece.position,
                check_crc=check_crc,
                on_error=on_error,
                limit=limit,
                scratch=scratch,
                budget=_BUDGET,
                measured=not alike.is_known,
            )
            at = run.end
            if not run.measured:
                batch = alike.columns_of(run)
                if batch is not None:
                    yield batch
                    continue
                measure(run, on_error)
            alike.learn(run)
            if run.records:
                yield columns_of(run, columns)
        scratch.shrink(8 * _BUDGET)

    yield from decode_file(
        source, decode, start=start, end=end, on_error=on_error, chunk=chunk, threads=threads
    )
