"""A process to be killed: appends to a log and prints what has been acknowledged.

Each line is the offset of a record and its number. Some appends wait alone, some together; small
segments are rolled, snapshots made and old segments dropped all the while.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

from kraftline.raft import EmbeddedLog, LogSettings
from kraftline.storage.names import SnapshotId
from tests.raft.logs import NO_OP, NODE, topic

SETTINGS = LogSettings(segment_bytes=20_000, clean_interval_ms=0, delete_delay_ms=5)


async def main(directory: str, seed: int) -> None:
    pick = random.Random(seed)
    log = await EmbeddedLog.open(directory, node_id=NODE, settings=SETTINGS)
    numbers = iter(range(seed * 1_000_000, 2**62))

    async def write() -> None:
        group = [next(numbers) for _ in range(pick.choice((1, 1, 1, 5, 50)))]
        appended = await log.write([topic(n) for n in group])
        lines = (f"{appended.base_offset + i} {n}\n" for i, n in enumerate(group))
        os.write(1, "".join(lines).encode())

    while True:
        await asyncio.gather(*(write() for _ in range(pick.choice((1, 1, 3, 20)))))
        if pick.random() < 0.02:
            id = SnapshotId(log.high_watermark, log.epoch)
            await log.create_snapshot(id, [[NO_OP]], last_contained_log_timestamp=1)
            if pick.random() < 0.3:
                await log.delete_before(id)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
