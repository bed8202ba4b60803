"""Logs with something to clean: what producers of each kind leave, written by the node's own log.

A story is told in chapters; between them the log is cleaned, at the time that the chapter says.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from kraftline.records import Codec, Record, build_batch, empty_batch
from kraftline.records.control import build_end_txn_batch
from kraftline.records.record import TimestampType
from kraftline.storage.log import LogConfig, Origin, PartitionLog, Stopped, log_config
from kraftline.storage.segment_write import write_segment
from tests.storage.log.logs import NOW, Clock

DAY = 24 * 3_600_000
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "6000",
    "index.interval.bytes": "500",
    "delete.retention.ms": str(DAY // 2),
    "min.cleanable.dirty.ratio": "0.01",
}

Chapter = Callable[["Writer"], None]


class Story(NamedTuple):
    """`chapters`: what is written before each cleaning, and its time after NOW. `packed`: batches
    are compressed, which no two libraries do alike. `segments` are written as they are before the
    first chapter."""

    name: str
    chapters: tuple[tuple[Chapter, int], ...]
    config: Mapping[str, str] = {}
    packed: bool = False
    segments: Callable[[Path], None] | None = None
    memory: int = 1024 * 1024
    seed: int = 0

    @property
    def settings(self) -> dict[str, str]:
        return {**CONFIG, **self.config}

    @property
    def log_config(self) -> LogConfig:
        return log_config(self.settings)


class Writer:
    """Appends to an open log; random choices are the same every time."""

    def __init__(self, log: PartitionLog, clock: Clock, seed: int) -> None:
        self.log = log
        self.clock = clock
        self.pick = random.Random(seed)

    def records(
        self, count: int, *, keys: int = 20, tombstones: float = 0.0, headers: float = 0.0
    ) -> list[Record]:
        pick, found = self.pick, []
        for n in range(count):
            key = b"key-%d" % pick.randrange(keys)
            value = None if pick.random() < tombstones else pick.randbytes(pick.randint(0, 90))
            some = (("a", b"1"), ("b", None), ("ü", b"")) if pick.random() < headers else ()
            # Not in order: a batch's first record is not always its oldest.
            timestamp = self.clock.now - 10_000 + pick.randint(0, 10_000)
            found.append(Record(n, timestamp, key, value, some))
        return found

    def append(self, records: list[Record], epoch: int = 0, codec: Codec = Codec.NONE) -> None:
        self.log.append(bytearray(build_batch(records, codec=codec)), epoch)
        self.log.update_high_watermark(self.log.end_offset)

    def produce(
        self, producer: int, records: list[Record], *, epoch: int = 0, transactional: bool = False
    ) -> None:
        """As an idempotent producer does."""
        known = self.log.producers.get(producer)
        if known is None:
            sequence = 0
        elif epoch < known.epoch:
            epoch, sequence = known.epoch + 1, 0  # one that was started again
        else:
            sequence = known.last_sequence + 1 if epoch == known.epoch else 0
        batch = build_batch(
            records,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        self.log.append(bytearray(batch), 0)
        self.log.update_high_watermark(self.log.end_offset)

    def end(self, producer: int, *, commit: bool, epoch: int = 0) -> None:
        """A transaction's marker."""
        known = self.log.producers.get(producer)
        epoch = max(epoch, -1 if known is None else known.epoch)
        marker = build_end_txn_batch(
            commit=commit,
            base_offset=0,
            timestamp=self.clock.now,
            producer_id=producer,
            producer_epoch=epoch,
            coordinator_epoch=0,
        )
        self.log.append(bytearray(marker), 0, Origin.COORDINATOR)
        self.log.update_high_watermark(self.log.end_offset)

    def roll(self) -> None:
        self.log.roll()


def opened(story: Story, directory: Path, clock: Clock) -> PartitionLog:
    log = PartitionLog.open(directory, story.log_config, stopped=Stopped(), clock=clock)
    log.update_high_watermark(log.end_offset)
    return log


def random_story(seed: int) -> Story:
    """Some chapters of anything, hours or days apart, with any size of a map.

    Not with transactions where the map may be full: a round that begins inside of a segment, behind
    the marker of an aborted transaction, takes the next one of that producer for aborted as well in
    Kafka, and leaves its keys out of the map.
    """
    pick, time, chapters = random.Random(seed), 0, []
    memory = pick.choice([1024 * 1024, 1024 * 1024, 24 * 40, 24 * 300])
    chapter = anything if memory > 24 * 300 else anything_but_transactions
    for _ in range(pick.randint(2, 4)):
        time += pick.choice([1000, DAY // 4, DAY, 3 * DAY])
        chapters.append((chapter, time))
    size = pick.choice([1500, 6000, 20000])
    config = {"internal.segment.bytes": str(size)}
    return Story("anything", tuple(chapters), config, memory=memory, seed=seed)


def write_chapter(story: Story, number: int, directory: Path, clock: Clock) -> None:
    """Append it and stop cleanly; the active segment is empty then, so that all may be cleaned."""
    if number == 0 and story.segments is not None:
        story.segments(directory)
    log = opened(story, directory, clock)
    story.chapters[number][0](Writer(log, clock, 10 * story.seed + number))
    log.roll()
    log.close()


# What is written


def plain(writer: Writer) -> None:
    for n in range(60):
        writer.append(writer.records(writer.pick.randint(1, 12)), epoch=n // 20)


def compressed(writer: Writer) -> None:
    for n in range(100):
        codec = Codec(1 + n % 4)
        writer.append(writer.records(writer.pick.randint(1, 25), headers=0.2), codec=codec)


def with_headers(writer: Writer) -> None:
    for _ in range(60):
        writer.append(writer.records(writer.pick.randint(1, 12), headers=0.6))


def deletes(writer: Writer) -> None:
    for _ in range(60):
        writer.append(writer.records(writer.pick.randint(1, 12), keys=40, tombstones=0.3))


def compressed_deletes(writer: Writer) -> None:
    for n in range(60):
        records = writer.records(writer.pick.randint(1, 12), keys=40, tombstones=0.3)
        writer.append(records, codec=Codec(1 + n % 4))


def few(writer: Writer) -> None:
    """Not a key of what was there before, so that only time makes a difference."""
    for n in range(20):
        record = Record(0, writer.clock.now, b"new-%d" % n, b"x" * 100)
        writer.append([record])


def idempotent(writer: Writer) -> None:
    for n in range(80):
        producer = writer.pick.choice([1000, 1001, 1002]) if n < 70 else 1003
        writer.produce(producer, writer.records(writer.pick.randint(1, 6), keys=8))


def transactions(writer: Writer) -> None:
    for n in range(24):
        first, second = 2000 + n % 3, 2010 + n % 2
        writer.produce(first, writer.records(4, keys=12, tombstones=0.1), transactional=True)
        if n % 4 == 1:
            writer.append(writer.records(3, keys=12))
        writer.produce(second, writer.records(3, keys=12), transactional=True)
        writer.end(first, commit=n % 3 != 0)
        writer.produce(second, writer.records(2, keys=12), transactional=True)
        writer.end(second, commit=n % 2 == 0)


def aborted_alone(writer: Writer) -> None:
    """Whole segments of nothing but aborted records, and markers without a transaction here."""
    for n in range(30):
        writer.produce(3000, writer.records(9, keys=4), transactional=True)
        if n % 5 == 4:
            writer.end(3000, commit=False)
    writer.end(3001, commit=True)
    writer.end(3002, commit=False)
    writer.append(writer.records(5))


def fenced(writer: Writer) -> None:
    """Markers that bring a new epoch are the last that is known of a producer."""
    for n in range(20):
        producer = 4000 + n % 4
        writer.produce(producer, writer.records(5, keys=6), transactional=True)
        writer.end(producer, commit=True)
    for n in range(4):
        writer.end(4000 + n, commit=False, epoch=1)


def append_time(writer: Writer) -> None:
    for _ in range(40):
        writer.append(writer.records(writer.pick.randint(1, 12), tombstones=0.2))
        writer.clock.now += 7


def without_keys(writer: Writer) -> None:
    """As a topic has that was not compacted before."""
    writer.log.configure(log_config({**CONFIG, "cleanup.policy": "delete"}))
    for n in range(40):
        records = writer.records(writer.pick.randint(1, 8))
        writer.append(
            [Record(r.offset, r.timestamp, None if n % 3 else r.key, r.value) for r in records]
        )


def anything(writer: Writer) -> None:
    """All of it in any order: transactions begin and end at random, producers get new epochs."""
    mixed(writer, range(5000, 5006))


def anything_but_transactions(writer: Writer) -> None:
    mixed(writer, range(5000, 5006, 2))


def mixed(writer: Writer, producers: range) -> None:
    pick = writer.pick
    epochs = dict.fromkeys(producers, 0)
    is_open: set[int] = set()
    for _ in range(pick.randint(20, 120)):
        producer = pick.choice(tuple(epochs))
        epoch = epochs[producer]
        records = writer.records(
            pick.randint(1, 9), keys=pick.choice([5, 60]), tombstones=0.2, headers=0.1
        )
        if producer % 2:  # with transactions
            if producer not in is_open or pick.random() < 0.5:
                writer.produce(producer, records, epoch=epoch, transactional=True)
                is_open.add(producer)
            else:
                writer.end(producer, commit=pick.random() < 0.5, epoch=epoch)
                is_open.remove(producer)
                if pick.random() < 0.2:
                    epochs[producer] = epoch + 1
        elif pick.random() < 0.5:
            writer.produce(producer, records, epoch=epoch)
        else:
            writer.append(records)
        if pick.random() < 0.03:
            writer.roll()
        writer.clock.now += pick.choice([0, 1, 1000])
    for producer in is_open:
        writer.end(producer, commit=pick.random() < 0.5, epoch=epochs[producer])


def nothing(writer: Writer) -> None:
    """It is all there already."""


def old_formats(directory: Path) -> None:
    """Message sets of v0 and v1 in front, as a topic has that is older than Kafka 0.11."""
    pick, offset = random.Random(5), 0
    directory.mkdir(parents=True)
    base, made = 0, []
    for n in range(90):
        magic, codec = n % 2, Codec.NONE if n % 3 else Codec(1 + n // 3 % 3)
        kind: TimestampType = "CreateTime" if magic else "NoTimestampType"
        records = []
        for _ in range(pick.randint(1, 8)):
            value = None if pick.random() < 0.15 else pick.randbytes(pick.randint(0, 60))
            time = NOW - 5000 + pick.randint(0, 4000) if magic else -1
            key = b"key-%d" % pick.randrange(70)
            records.append(Record(offset, time, key, value, timestamp_type=kind))
            offset += 1
        made.append(build_batch(records, magic=magic, codec=codec, timestamp_type=kind))
        if n % 15 == 14:
            path = directory / f"{base:020d}.log"
            write_segment(path, made, interval=500)
            # Their age is all that says when tombstones may go.
            age = (90 - n) * DAY // 100
            os.utime(path, ((NOW - age) / 1000, (NOW - age) / 1000))
            base, made = offset, []


def holes(directory: Path) -> None:
    """As an earlier cleaning leaves it: empty batches, empty segments, gaps between offsets."""
    directory.mkdir(parents=True)
    pick, offset = random.Random(6), 0
    for n in range(6):
        base, made = offset, []
        for _ in range(12):
            if n == 2:
                offset += 11
                continue
            if pick.random() < 0.3:
                made.append(
                    empty_batch(
                        offset, offset + 4, NOW, producer_id=7, producer_epoch=0, base_sequence=5
                    )
                )
                offset += 5
            records = [
                Record(offset + 3 * i, NOW + i, b"key-%d" % pick.randrange(9), b"v" * 40)
                for i in range(4)
            ]
            made.append(build_batch(records, base_offset=offset, last_offset=offset + 15))
            offset += 16 + pick.randrange(3)
        write_segment(directory / f"{base:020d}.log", made, interval=500)


STORIES = (
    Story("plain", ((plain, 0), (plain, 1000))),
    Story("compressed", ((compressed, 0), (compressed, 1000)), packed=True),
    Story("headers", ((with_headers, 0),)),
    Story("deletes", ((deletes, 0), (few, DAY), (few, 3 * DAY))),
    Story("packed_deletes", ((compressed_deletes, 0), (few, DAY)), packed=True),
    Story("idempotent", ((idempotent, 0), (few, 1000), (few, 3 * DAY))),
    Story("transactions", ((transactions, 0), (few, 1000), (few, DAY), (transactions, 3 * DAY))),
    Story("aborted", ((aborted_alone, 0), (few, 1000), (few, DAY), (few, 3 * DAY))),
    Story("fenced", ((fenced, 0), (few, 1000), (few, 3 * DAY), (few, 4 * DAY))),
    Story(
        "append_time",
        ((append_time, 0), (few, DAY)),
        config={"message.timestamp.type": "LogAppendTime"},
    ),
    Story("keyless", ((without_keys, 0),)),
    Story("small_map", ((plain, 0), (plain, 1000)), memory=24 * 12),
    Story(
        "old_formats",
        ((nothing, 0), (few, DAY), (plain, 2 * DAY)),
        segments=old_formats,
        packed=True,
    ),
    Story("holes", ((nothing, 0), (plain, 1000)), segments=holes),
)
