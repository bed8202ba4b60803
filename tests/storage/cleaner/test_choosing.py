"""Which log is cleaned next, and what of it: as Kafka's own LogCleanerManager decides."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftline.storage.checkpoints import CLEANER_OFFSETS, PartitionOffset, write_offset_checkpoint
from kraftline.storage.cleaner.choosing import Dirt, dirt_of
from kraftline.storage.cleaner.cleaner import Cleaner, CleanerSettings
from kraftline.storage.log import Logs, PartitionLog, log_config
from tests.effort import rounds
from tests.storage.cleaner.dirty_logs import CONFIG, Writer
from tests.storage.cleaner.kafkas_cleaner import KafkasCleaner
from tests.storage.log.logs import NOW, Clock, log_directory, one

MINUTE = 60_000


def fill(log: PartitionLog, pick: random.Random, clock: Clock) -> None:
    """Some segments, each some minutes younger than the one before."""
    writer = Writer(log, clock, pick.randrange(1000))
    for _ in range(pick.randint(1, 6)):
        clock.now += pick.randint(1, 10) * MINUTE
        for _ in range(pick.randint(1, 9)):
            writer.append(writer.records(pick.randint(1, 9)))
        if pick.random() < 0.2:
            writer.produce(7, writer.records(2), transactional=True)
        if pick.random() < 0.7:
            log.roll()


class Choice(NamedTuple):
    """What our cleaner takes, and what it thinks of all logs."""

    delay: int
    partition: str | None
    dirt: dict[str, Dirt]


def chosen(directory: Path, configs: dict[str, dict[str, str]], now: int) -> Choice:
    clock = Clock(now)
    logs = Logs.open(directory, lambda topic: log_config(configs[topic]), clock=clock)
    for log in logs:
        log.update_high_watermark(log.end_offset)
    cleaner = Cleaner((logs,), CleanerSettings(), clock=clock)
    dirt = {log.name: dirt_of(log, cleaner.first_dirty_offset(log), now) for log in logs}
    found = cleaner._take()
    logs.close()
    return Choice(cleaner.delay_ms, None if found is None else found[0].name, dirt)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(rounds(12)))
def test_kafka_would_clean_the_same(seed: int, kafkas: KafkasCleaner, tmp_path: Path) -> None:
    pick, clock = random.Random(seed), Clock()
    configs = {
        f"t{n}": {
            **CONFIG,
            "min.cleanable.dirty.ratio": pick.choice(["0", "0.3", "0.8"]),
            "min.compaction.lag.ms": str(pick.choice([0, 0, 5, 25]) * MINUTE),
            "max.compaction.lag.ms": str(pick.choice([10, 100, 10**9]) * MINUTE + 5 * MINUTE),
            "cleanup.policy": pick.choice(["compact", "compact", "compact,delete", "delete"]),
        }
        for n in range(4)
    }
    for config in configs.values():
        if int(config["min.compaction.lag.ms"]) > int(config["max.compaction.lag.ms"]):
            config["min.compaction.lag.ms"] = "0"
    data = log_directory(tmp_path / "data")
    logs = Logs.open(data, lambda topic: log_config(configs[topic]), clock=clock)
    checkpoints, latest = [], NOW
    for topic in configs:
        clock.now = NOW
        log = logs.create(topic, 0)
        fill(log, pick, clock)
        latest = max(latest, clock.now)
        if pick.random() < 0.3:
            log.advance_start(pick.randrange(log.end_offset))
        if pick.random() < 0.7:
            offset = pick.choice([pick.randrange(log.end_offset + 1), 10**6])
            checkpoints.append(PartitionOffset(topic, 0, offset))
    logs.close()
    write_offset_checkpoint(data / CLEANER_OFFSETS, checkpoints)
    # Kafka is not told of log start offsets here; ours are in a checkpoint.
    (data / "log-start-offset-checkpoint").unlink()
    now = latest + pick.choice([0, 5, 60]) * MINUTE
    there = [(data / f"{topic}-0", config) for topic, config in configs.items()]
    ours = chosen(data, configs, now)
    theirs = kafkas.choose(there, now)
    assert ours.delay == theirs["delay"]
    partition = theirs.get("partition")
    assert (ours.partition is None) == (partition is None)
    if isinstance(partition, str) and ours.partition is not None:
        found = ours.dirt[partition]
        assert found.first_dirty == theirs["firstDirty"]
        assert found.end == theirs["end"]
        assert found.clean_bytes == theirs["cleanBytes"]
        assert found.dirty_bytes == theirs["dirtyBytes"]
        # Of logs that are just as dirty, Kafka takes any.
        assert found.ratio == ours.dirt[ours.partition].ratio


def dirt(delay_ms: int = 0) -> Dirt:
    return Dirt(first_dirty=0, end=10, clean_bytes=50, dirty_bytes=50, delay_ms=delay_ms)


def test_a_log_is_due_by_its_ratio_or_its_age() -> None:
    assert dirt().is_due(0.4)
    assert not dirt().is_due(0.5)
    assert dirt(delay_ms=1).is_due(0.9)


def test_nothing_at_or_above_the_last_stable_offset_is_dirty(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "t-0", log_config(CONFIG), clock=Clock())
    log.append(one(count=3), 0)
    log.roll()
    log.append(one(producer=(1, 0, 0), transactional=True), 0)
    log.roll()
    log.append(one(count=3), 0)
    log.roll()
    assert dirt_of(log, None, NOW).dirty_bytes == 0  # nothing is committed
    log.update_high_watermark(log.end_offset)
    assert dirt_of(log, None, NOW).end == 3  # the transaction is open
    log.close()


def test_a_checkpoint_that_cannot_be_is_made_right(tmp_path: Path) -> None:
    data = log_directory(tmp_path / "data")
    config = log_config({**CONFIG, "min.cleanable.dirty.ratio": "0"})
    logs = Logs.open(data, lambda topic: config, clock=Clock())
    log = logs.create("t", 0)
    for _ in range(3):
        log.append(one(count=3), 0)
        log.roll()
    log.update_high_watermark(log.end_offset)
    write_offset_checkpoint(data / CLEANER_OFFSETS, [PartitionOffset("t", 0, 1000)])
    cleaner = Cleaner((logs,), CleanerSettings(), clock=Clock())
    assert cleaner.first_dirty_offset(log) == 1000
    assert cleaner.run_round(threading.Event())
    assert cleaner.first_dirty_offset(log) == 9
    assert (data / CLEANER_OFFSETS).read_text() == "0\n1\nt 0 9\n"
    logs.close()
