"""The files that are measured: data segments, the same rows as Parquet, metadata logs.

Inputs are made in processes of their own: a child's peak memory is never below what its parent
had in memory when it was started, so the measuring process stays small.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from benchmarks.metadata_mix import Mix, metadata_batches
from benchmarks.work import ROWS
from kraftline.records.compression import compress
from kraftline.records.record import Codec
from kraftline.records.write import frame_batch, varint
from kraftline.storage.segment_write import write_segment

SEGMENT = "00000000000000000000.log"
START_MS = 1_767_225_600_000  # 2026-01-01T00:00Z

_RECORDS = 130  # a batch: 16 KB, Kafka's default batch.size
_POOL = 1 << 16
_KEY_BYTES = 16
_BYTES = 100  # a value


@dataclass(frozen=True)
class Made:
    """A file, how many records are in it, and what they take uncompressed."""

    path: Path
    records: int
    size: int
    plain_size: int
    mix: Mix | None = None


class Maker:
    """Makes each input once, below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[str, Made] = {}

    def data(self, size: int, codec: Codec = Codec.NONE) -> Made:
        folder = self._root / f"data-{size}-{codec.name.lower()}" / "events-0"
        return self._once(folder / SEGMENT, make_data, size, codec)

    def parquet(self, size: int) -> Made:
        return self._once(self._root / f"data-{size}.parquet", make_parquet, self.data(size))

    def metadata(self, records: int) -> Made:
        folder = self._root / f"metadata-{records}" / "__cluster_metadata-0"
        return self._once(folder / SEGMENT, make_metadata, records)

    def _once(self, path: Path, make: Callable[..., Made], *args: object) -> Made:
        if str(path) not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                self._made[str(path)] = pool.submit(make, path, *args).result()
        return self._made[str(path)]


def make_data(path: Path, size: int, codec: Codec) -> Made:
    """A segment with about `size` bytes of uncompressed batches."""
    plain = records = 0

    def batches() -> Iterator[bytes]:
        nonlocal plain, records
        for body, base, first, last in _bodies(size):
            records += _RECORDS
            plain += len(body) + 61
            yield frame_batch(
                compress(codec, body),
                count=_RECORDS,
                codec=codec,
                base_offset=base,
                last_offset=base + _RECORDS - 1,
                base_timestamp=first,
                max_timestamp=last,
                partition_leader_epoch=7,
            )

    write_segment(path, batches())
    return Made(path, records, path.stat().st_size, plain)


def _bodies(size: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Encoded records of batch after batch: (body, base offset, first and last timestamp)."""
    rng = random.Random(26)
    keys = [b"customer-%07d" % rng.randrange(10_000_000) for _ in range(_POOL)]
    values = [_value(rng) for _ in range(_POOL)]
    between, after = varint(_BYTES), varint(0)
    choose = rng.choice
    base, now, done = 0, START_MS, 0
    while done < size:
        deltas = list(accumulate(rng.choices((0, 0, 0, 1, 1, 2, 5), k=_RECORDS - 1), initial=0))
        parts: list[bytes] = []
        for at, delta in enumerate(deltas):
            parts += (_head(delta, at), choose(keys), between, choose(values), after)
        body = b"".join(parts)
        yield body, base, now, now + deltas[-1]
        base += _RECORDS
        now += deltas[-1] + 1
        done += len(body) + 61


@cache
def _head(timestamp_delta: int, offset_delta: int) -> bytes:
    """The front of a record: length, attributes, deltas, and how long the key is."""
    head = b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(_KEY_BYTES)
    return varint(len(head) + _KEY_BYTES + 2 + _BYTES + 1) + head


def _value(rng: random.Random) -> bytes:
    """100 bytes of JSON as services write it: half field names, half digits and identifiers."""
    text = (
        f'{{"id":"{rng.getrandbits(64):016x}","item":{rng.randrange(100_000)},'
        f'"price":{rng.randrange(1, 100_000) / 100},"state":"{rng.choice(_STATES)}","note":"'
    )
    note = f"{rng.getrandbits(256):064x}"
    return (text + note)[: _BYTES - 2].encode() + b'"}'


_STATES = ("open", "paid", "packed", "sent", "returned")


def make_parquet(path: Path, segment: Made) -> Made:
    """The rows of a segment as plain, uncompressed Parquet: the quickest there is to read."""
    import pyarrow.parquet as pq

    from kraftline.records.arrow import schema_of
    from kraftline.records.column_reader import read_columns

    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with pq.ParquetWriter(path, schema_of(ROWS), **options) as writer:
        for batch in read_columns(segment.path, columns=ROWS):
            writer.write_batch(batch)
    size = path.stat().st_size
    return Made(path, segment.records, size, size)


def make_metadata(path: Path, records: int) -> Made:
    """A metadata log of `records` records, as a large cluster writes it."""
    mix = Mix()
    write_segment(path, metadata_batches(records, START_MS, mix))
    size = path.stat().st_size
    return Made(path, records, size, size, mix)
