"""Cleaning a compacted log: `python -m benchmarks.cleaner [--quick] [DIRECTORY]`, beside Kafka's
own cleaner with one thread.

Both clean the same log, in turn, from a fresh copy that is in the page cache: what their cleaner
threads do, from the first key that is noted to the last segment that is swapped in and flushed.
Kafka's runs in a JVM that has cleaned a log before. One record in ten is the last of its key; keys
have 16 bytes and values 100, batches 130 records (16 KB) where nothing else is said, segments
128 MiB, the map 128 MiB.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from kraftline.records import Codec, Record, build_batch
from kraftline.storage.cleaner.choosing import dirt_of
from kraftline.storage.cleaner.cleaner import CleanerSettings
from kraftline.storage.cleaner.cleaning import Cleaning
from kraftline.storage.cleaner.offset_map import OffsetMap
from kraftline.storage.log import PartitionLog, Stopped, log_config
from kraftline.storage.log.partition_log import wall_clock
from tests.storage.cleaner.kafkas_cleaner import KafkasCleaner

SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(128 * 1024 * 1024)}
MEMORY = 128 * 1024 * 1024
LIVE = 10


class Size(NamedTuple):
    megabytes: int
    codec: Codec
    per_batch: int = 130

    @property
    def words(self) -> str:
        found = f"{self.megabytes} MB"
        if self.codec:
            found += f", {self.codec.name.lower()}"
        return found if self.per_batch > 1 else f"{found}, a record a batch"


SIZES = (
    Size(200, Codec.NONE),
    Size(1000, Codec.NONE),
    Size(200, Codec.ZSTD),
    Size(1000, Codec.ZSTD),
    Size(100, Codec.NONE, 1),
    Size(200, Codec.NONE, 1),
)
QUICK = (
    Size(20, Codec.NONE),
    Size(60, Codec.NONE),
    Size(20, Codec.ZSTD),
    Size(20, Codec.NONE, 1),
)


class Times(NamedTuple):
    """Seconds of both, the best of all rounds, and what stayed."""

    ours: float
    kafkas: float
    records: int
    kept: int


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--quick", is_flag=True, help="Small logs.")
@click.argument("directory", required=False)
def main(rounds: int, quick: bool, directory: str | None) -> None:
    """The same logs cleaned by Kafka's cleaner and by ours; in a DIRECTORY, or where temporary
    files are."""
    print("| log | records | that stay | Kraftline | Kafka 4.3.1 | quicker |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=directory) as root, KafkasCleaner() as kafkas:
        warm = make(Path(root) / "warm", Size(10 if quick else 100, Codec.NONE))
        their_time(kafkas, warm)
        shutil.rmtree(warm.parent)
        for size in QUICK if quick else SIZES:
            made = make(Path(root) / "made", size)
            times = measure(made, kafkas, rounds)
            shutil.rmtree(made.parent)
            print(
                f"| {size.words} | {times.records:,} | {times.kept:,} | {times.ours:.2f} s "
                f"| {times.kafkas:.2f} s | {times.kafkas / times.ours:.1f}x |",
                flush=True,
            )


def make(root: Path, size: Size) -> Path:
    """A partition's directory with so many megabytes of records, before compression."""
    directory = root / "t-0"
    config = log_config(SETTINGS)
    log = PartitionLog.open(directory, config)
    for batch in batches(size):
        log.append(bytearray(batch), 0)
    log.roll()
    log.close()
    return directory


def batches(size: Size) -> Iterator[bytes]:
    pick = random.Random(1)
    count = size.megabytes * 1_000_000 // (size.per_batch * 124 + 61)
    keys = count * size.per_batch // LIVE
    now = wall_clock()
    text = b"".join(b'{"id":%d,"name":"n%d"}' % (n, n * 7919) for n in range(4000))
    for _ in range(count):
        records = []
        for i in range(size.per_batch):
            at = pick.randrange(len(text) - 100)
            records.append(Record(i, now, b"key-%012d" % pick.randrange(keys), text[at : at + 100]))
        yield build_batch(records, codec=size.codec)


def measure(made: Path, kafkas: KafkasCleaner, rounds: int) -> Times:
    ours, theirs, counted = [], [], (0, 0)
    for _ in range(rounds):
        seconds, counted = our_time(made)
        ours.append(seconds)
        said, kept = their_time(kafkas, made)
        theirs.append(said)
        assert kept == counted[1], "both keep the same records"
    return Times(min(ours), min(theirs), *counted)


def copied(made: Path) -> Path:
    target = made.parent / "copy" / made.name
    shutil.rmtree(target.parent, ignore_errors=True)
    shutil.copytree(made, target)
    os.sync()
    return target


def our_time(made: Path) -> tuple[float, tuple[int, int]]:
    log = PartitionLog.open(copied(made), log_config(SETTINGS), stopped=Stopped())
    log.update_high_watermark(log.end_offset)
    settings = CleanerSettings(dedupe_buffer_size=MEMORY)
    now = wall_clock()
    offset_map = OffsetMap(settings.map_memory, settings.dedupe_buffer_load_factor)
    cleaning = Cleaning(log, dirt_of(log, None, now), offset_map, now, chunk=settings.chunk)
    done = cleaning.run().statistics
    log.close()
    return done.seconds, (done.records_read, done.records_written)


def their_time(kafkas: KafkasCleaner, made: Path) -> tuple[float, int]:
    said = kafkas.clean(copied(made), SETTINGS, wall_clock(), memory=MEMORY)
    seconds, kept = said["seconds"], said["recordsWritten"]
    assert isinstance(seconds, float)
    assert isinstance(kept, int)
    return seconds, kept


if __name__ == "__main__":
    main()
