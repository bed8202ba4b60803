"""A partition's log by itself: `python -m benchmarks.log`. What an append and a read lookup cost.

Processor time of this process, system calls included, the best of some rounds: other processes on
the machine make the clock tell less. Appends go to fresh pages, which is most of what a write
costs; "without the write" is the work in Python alone.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kraftline.records import Codec, Record, build_batch
from kraftline.storage.log import LogConfig, PartitionLog
from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.log.partition_log import wall_clock

_ROUNDS = 10
_SIZES = (64 * 1024 * 1024, 1024 * 1024 * 1024)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as root:
        for size in _SIZES:
            print(f"a log of {size // 2**20:,} MiB, segments of 256 MiB")
            for name, micros in measure(Path(root) / f"{size}-0", size):
                print(f"  {micros:8.2f} µs  {name}")


def measure(directory: Path, size: int) -> list[tuple[str, float]]:
    log = PartitionLog.open(directory, LogConfig(segment_bytes=256 * 1024 * 1024, retention_ms=-1))
    plain, small = batch(16, 1000), batch(1, 100)
    while log.size < size:
        log.append(bytearray(plain), 0)
    pick = random.Random(1)
    anywhere = [pick.randrange(log.end_offset) for _ in range(1000)]
    near_end = [log.end_offset - 1 - pick.randrange(1000) for _ in range(1000)]
    found = [
        ("append, 16 KB of 1 KB records", appends(log, plain)),
        ("append, 16 KB, idempotent", appends(log, batch(16, 1000, producer=7), producer=True)),
        ("append, 16 KB, lz4", appends(log, batch(16, 1000, codec=Codec.LZ4))),
        ("append, one record of 100 bytes", appends(log, small)),
        ("look up any offset", lookups(log, anywhere)),
        ("look up an offset near the end", lookups(log, near_end)),
    ]
    real = OpenFile.write
    OpenFile.write = lambda self, data, position: None  # type: ignore[method-assign]  # no write
    try:
        found.insert(1, ("the same without the write", appends(log, plain)))
    finally:
        OpenFile.write = real  # type: ignore[method-assign]  # as it was
    log.release()
    return found


def batch(count: int, size: int, *, codec: Codec = Codec.NONE, producer: int = -1) -> bytes:
    now = wall_clock()
    return build_batch(
        [Record(n, now, None, os.urandom(size // 2).hex().encode()) for n in range(count)],
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
    )


def appends(log: PartitionLog, data: bytes, *, producer: bool = False) -> float:
    """One buffer, received again and again: its header is what it was before each append."""
    buffer = bytearray(data)
    view, header = memoryview(buffer), data[:61]

    def append() -> None:
        buffer[:61] = header
        log.append(view, 0)

    def append_new_producer() -> None:
        buffer[:61] = header
        log.append(view, 0)
        log.producers.clear(log.end_offset)

    return best(append_new_producer if producer else append, 500)


def lookups(log: PartitionLog, offsets: list[int]) -> float:
    end = log.update_high_watermark(log.end_offset)

    def look_up() -> None:
        for offset in offsets:
            log.read(offset, 1_000_000, up_to=end)

    return best(look_up, 1) / len(offsets)


def best(work: Callable[[], None], times: int) -> float:
    """µs of one call."""
    found = []
    for _ in range(_ROUNDS):
        start = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - start) / times * 1e6)
    return min(found)


if __name__ == "__main__":
    main()
