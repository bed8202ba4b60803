"""Small segments made on the spot."""

from __future__ import annotations

import random

from kraftline.records import Record, build_batch


def one_batch(
    offset: int, count: int = 1, *, timestamp: int = 1000, value_size: int = 20, magic: int = 2
) -> bytes:
    """A batch of `count` records whose values are noise, the same for the same offset."""
    noise = random.Random(offset)
    return build_batch(
        [
            Record(offset + n, timestamp + n, None, noise.randbytes(value_size))
            for n in range(count)
        ],
        magic=magic,
    )


def some_batches(
    count: int, *, start: int = 0, value_size: int = 20, magic: int = 2
) -> list[bytes]:
    """Batches back to back: 1 to 3 records each (one in the old formats), time rising."""
    out, offset = [], start
    for n in range(count):
        records = 1 if magic < 2 else 1 + n % 3
        out.append(
            one_batch(offset, records, timestamp=1000 + 10 * n, value_size=value_size, magic=magic)
        )
        offset += records
    return out
