"""A process to be killed: appends values of some keys, cleans the log all the while, and prints
what has been acknowledged.

Each line is a key and the number that it has got, after a flush.
"""

from __future__ import annotations

import os
import random
import sys
import threading

from kraftline.records import Codec, Record, build_batch
from kraftline.storage.cleaner.cleaner import Cleaner, CleanerSettings, run_thread
from kraftline.storage.log import Logs, log_config
from kraftline.storage.log.partition_log import wall_clock
from tests.storage.cleaner.dirty_logs import CONFIG

SETTINGS = log_config({**CONFIG, "min.cleanable.dirty.ratio": "0", "file.delete.delay.ms": "0"})


def main(directory: str, seed: int) -> None:
    pick = random.Random(seed)
    logs = Logs.open(directory, lambda topic: SETTINGS)
    log = logs.create("t", 0)
    log.update_high_watermark(log.end_offset)
    cleaner = Cleaner((logs,), CleanerSettings(backoff_ms=1))
    thread = threading.Thread(target=run_thread, args=(cleaner, threading.Event(), "one"))
    thread.daemon = True
    thread.start()
    number = seed * 1_000_000
    while True:
        made = []
        for _ in range(pick.choice((1, 3, 12))):
            number += 1
            made.append((pick.randrange(30), number))
        now = wall_clock()
        records = [
            Record(n, now, b"key-%d" % key, b"%d " % value * pick.randint(1, 9))
            for n, (key, value) in enumerate(made)
        ]
        log.append(bytearray(build_batch(records, codec=pick.choice(tuple(Codec)))), 0)
        log.update_high_watermark(log.end_offset)
        if pick.random() < 0.3:
            log.flush()
            os.write(1, "".join(f"{key} {value}\n" for key, value in made).encode())
        if pick.random() < 0.1:
            logs.remove_deleted()
        if pick.random() < 0.05:
            logs.checkpoint()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
