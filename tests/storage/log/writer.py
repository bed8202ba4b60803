"""A process to be killed: appends to some partitions and prints what has been acknowledged.

Each line is a partition, an offset and the number that the record at it holds. A flush in a
thread comes before each line, appends go on meanwhile; small segments are rolled and deleted,
checkpoints written all the while. With a count, the process comes to a clean stop after it.
"""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import Future, ThreadPoolExecutor

from kraftline.records import Codec, Record, build_batch
from kraftline.storage.log import LogConfig, Logs
from kraftline.storage.log.partition_log import wall_clock

CONFIG = LogConfig(segment_bytes=16_000, index_interval_bytes=500, file_delete_delay_ms=0)
PARTITIONS = 3


def main(directory: str, seed: int, most: int | None = None, *, trim: bool = True) -> None:
    pick = random.Random(seed)
    logs = Logs.open(directory, lambda topic: CONFIG)
    opened = [logs.create("t", partition) for partition in range(PARTITIONS)]
    sequences = [0] * PARTITIONS
    numbers = iter(range(seed * 1_000_000, 2**62))
    pool = ThreadPoolExecutor(4)

    def acknowledge(partition: int, first: int, made: list[int]) -> None:
        log = opened[partition]
        log.flush()
        log.update_high_watermark(log.recovery_point)
        lines = (f"{partition} {first + i} {n}\n" for i, n in enumerate(made))
        os.write(1, "".join(lines).encode())

    under_way: list[Future[None]] = []
    count = 0
    while most is None or count < most:
        partition = pick.randrange(PARTITIONS)
        made = [next(numbers) for _ in range(pick.choice((1, 1, 1, 5, 50)))]
        now = wall_clock()
        batch = build_batch(
            [Record(n, now, b"k", b"%d" % number) for n, number in enumerate(made)],
            codec=pick.choice((Codec.NONE, Codec.NONE, Codec.LZ4, Codec.ZSTD)),
            producer_id=seed * 10 + partition,
            producer_epoch=0,
            base_sequence=sequences[partition],
        )
        log = opened[partition]
        done = log.append(bytearray(batch), log.epochs.latest or 0)
        sequences[partition] += len(made)
        count += len(made)
        under_way.append(pool.submit(acknowledge, partition, done.first_offset, made))
        if len(under_way) > 8:
            under_way.pop(0).result()
        if pick.random() < 0.02:
            pool.submit(logs.checkpoint)
        if trim and pick.random() < 0.01:
            log.advance_start(max(log.start_offset, log.high_watermark - 500))
            pool.submit(logs.delete_old)
    for each in under_way:
        each.result()
    pool.shutdown()
    logs.close(broker_epoch=1)


if __name__ == "__main__":
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    main(sys.argv[1], int(sys.argv[2]), count or None, trim="keep" not in sys.argv)
