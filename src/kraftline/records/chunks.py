"""A file of batches read in chunks and decoded by whoever knows how, in flat memory.

Chunks go into buffers that are used again and again; with `threads` above one they are decoded
side by side (the kernels, decompression and reading let other threads run), and what comes of them
still comes out in order.
"""

from __future__ import annotations

import os
import queue
import threading
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import BinaryIO, Final, NamedTuple, TypeAlias, TypeVar

from kraftline.errors import BadData
from kraftline.records.compression import Scratch
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import OnError

_SCAN_ROWS: Final = 256

Source: TypeAlias = str | os.PathLike[str] | BinaryIO
ReadAt: TypeAlias = Callable[[memoryview, int], int]
T = TypeVar("T")


class Chunk(NamedTuple):
    """Whole batches in a buffer; in the last chunk of a file, perhaps also something else."""

    memory: bytearray
    size: int
    position: int


Decode: TypeAlias = Callable[[Chunk, OnError | None, Scratch], Iterator[T]]


def decode_file(
    source: Source,
    decode: Decode[T],
    *,
    start: int = 0,
    end: int | None = None,
    on_error: OnError | None = None,
    chunk: int,
    threads: int = 1,
) -> Iterator[T]:
    """What `decode` makes of a file (a path, or an open binary file that can seek), chunk by chunk.

    Errors say the position in the file; with `on_error` they are handed over, in order and on
    the caller's thread.
    """
    with ExitStack() as stack:
        read_at = _reader(source, stack)
        spare: list[bytearray] = []
        chunks = _chunks(read_at, start, end, chunk, spare)
        try:
            if threads > 1:
                yield from _side_by_side(chunks, decode, on_error, threads, spare)
            else:
                scratch = Scratch()
                for piece in chunks:
                    yield from decode(piece, on_error, scratch)
                    spare.append(piece.memory)
        except BadData as problem:
            if isinstance(source, (str, os.PathLike)):
                problem.at(file=os.fspath(source))
            raise


def _reader(source: Source, stack: ExitStack) -> ReadAt:
    if isinstance(source, (str, os.PathLike)):
        descriptor = os.open(source, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        return lambda view, position: os.preadv(descriptor, [view], position)

    def read_at(view: memoryview, position: int) -> int:
        source.seek(position)
        return source.readinto(view)  # type: ignore[attr-defined, no-any-return]  # BinaryIO lacks it

    return read_at


def _chunks(
    read_at: ReadAt, start: int, end: int | None, size: int, spare: list[bytearray]
) -> Iterator[Chunk]:
    """Read the file; what is cut at the end of one chunk starts the next."""
    position, rest, done = start, b"", False
    while not done:
        room = max(size, 2 * len(rest))
        memory = spare.pop() if spare else bytearray(room)
        if len(memory) < room:
            memory = bytearray(room)
        view = memoryview(memory)[:room]
        view[: len(rest)] = rest
        have = len(rest)
        while True:
            have, done = _fill(read_at, view, have, position, end)
            whole, why = _whole(view, have)
            if whole or done or why != kernel.CUT:
                break
            # The first batch is larger than the buffer. Doubling it goes no further than the
            # file does, whatever length the batch claims.
            grown = bytearray(2 * len(view))
            grown[:have] = view[:have]
            memory, view = grown, memoryview(grown)
        if why in (kernel.BAD_LENGTH, kernel.BAD_MAGIC):
            done = True
        if done:
            whole = have
        rest = bytes(view[whole:have])
        if position == start and _is_compressed(view[:whole]):
            size //= 2  # it grows: what comes of it should find room in the cache as well
        if whole:
            yield Chunk(memory, whole, position)
        position += whole


def _fill(
    read_at: ReadAt, view: memoryview, have: int, position: int, end: int | None
) -> tuple[int, bool]:
    """Read until the buffer is full or the file ends: (bytes there, has it ended?)."""
    room = len(view) if end is None else min(len(view), end - position)
    while have < room:
        read = read_at(view[have:room], position + have)
        if read == 0:
            return have, True
        have += read
    return have, end is not None and position + have >= end


def _whole(view: memoryview, have: int) -> tuple[int, int]:
    """Where the last whole batch ends, and why nothing comes after it."""
    table = array("q", bytes(8 * kernel.STRIDE * _SCAN_ROWS))
    at, why = 0, kernel.TABLE_FULL
    while why == kernel.TABLE_FULL:
        _, at, why = kernel.scan(view, at, have, 0, table)
    return at, why


def _is_compressed(batches: memoryview) -> bool:
    """Whether the first of them is."""
    return len(batches) > 22 and batches[16] == 2 and bool(batches[22] & 7)


class _Problem(NamedTuple):
    """Damage on its way from a worker to the caller's thread."""

    error: BadData


_END: Final = object()  # of a chunk
_LAST: Final = object()  # there are no more


def _side_by_side(
    chunks: Iterator[Chunk],
    decode: Decode[T],
    on_error: OnError | None,
    threads: int,
    spare: list[bytearray],
) -> Iterator[T]:
    """Decode up to `threads` chunks at once. Whoever decodes a chunk has read it too, one after the
    other: its bytes are in that core's cache. Each chunk has a short queue, so that a worker whose
    results nobody takes yet stops instead of piling them up."""
    closed = threading.Event()
    reading = threading.Lock()
    queues: queue.SimpleQueue[queue.Queue[object]] = queue.SimpleQueue()

    def put(results: queue.Queue[object], item: object) -> None:
        while not closed.is_set():
            try:
                results.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def work() -> None:
        scratch = Scratch()
        while not closed.is_set():
            results: queue.Queue[object] = queue.Queue(2)
            try:
                with reading:
                    queues.put(results)
                    chunk = next(chunks, None)
                if chunk is None:
                    put(results, _LAST)
                    return
                decode_one(chunk, results, scratch)
            except BaseException as problem:  # the caller's thread raises it
                put(results, problem)
                return

    def decode_one(chunk: Chunk, results: queue.Queue[object], scratch: Scratch) -> None:
        report = None
        if on_error is not None:

            def report(problem: BadData) -> None:
                put(results, _Problem(problem))

        for item in decode(chunk, report, scratch):
            put(results, item)
            if closed.is_set():
                return
        spare.append(chunk.memory)
        put(results, _END)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="columns")
    try:
        for _ in range(threads):
            pool.submit(work)
        while True:
            results = queues.get()
            while (item := results.get()) is not _END:
                if item is _LAST:
                    return
                if isinstance(item, BaseException):
                    raise item
                if isinstance(item, _Problem):
                    assert on_error is not None
                    on_error(item.error)
                else:
                    yield item  # type: ignore[misc]  # a queue of items, problems and ends
    finally:
        closed.set()
        pool.shutdown(cancel_futures=True)
