"""Segments are rolled, snapshots let old ones go, and files look as Kafka leaves them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kraftline.raft import EmbeddedLog, LogSettings, SnapshotRefused
from kraftline.storage.checkpoints import read_leader_epochs
from kraftline.storage.names import SnapshotId
from kraftline.storage.segment_write import rebuild_indexes
from kraftline.storage.snapshot_file import SnapshotReader
from tests.raft.logs import (
    NO_OP,
    NODE,
    Keeper,
    assert_healthy,
    formatted,
    metadata_log,
    names,
    opened,
    run,
    snapshot_ids,
    topic,
    values,
)

SMALL = LogSettings(segment_bytes=10_000, clean_interval_ms=0, delete_delay_ms=3_600_000)


async def write(log: EmbeddedLog, count: int, *, timestamp: int | None = None) -> None:
    for n in range(count):
        log.append([topic(n)], timestamp=timestamp)
        if n % 10 == 0:
            await log.commit()
    await log.commit()


async def snapshot(log: EmbeddedLog, *, time: int = 1) -> SnapshotId:
    id = SnapshotId(log.high_watermark, log.epoch)
    await log.create_snapshot(id, [[NO_OP]], last_contained_log_timestamp=time)
    return id


def segments(data: Path) -> list[int]:
    return sorted(int(path.stem) for path in metadata_log(data).glob("*.log"))


def test_segments_are_rolled_by_size(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data, SMALL) as log:
            await write(log, 500)

    run(work())
    bases = segments(data)
    assert len(bases) > 3
    for path in metadata_log(data).glob("*.log"):
        assert path.stat().st_size <= 10_000
        assert path.stat().st_size > 9_000 or path.stem == f"{bases[-1]:020d}"
    # Kafka notes at each roll that there are no producers.
    for base in bases[1:]:
        assert (metadata_log(data) / f"{base:020d}.snapshot").stat().st_size == 10
    assert values(data) == [topic(n) for n in range(500)]
    assert_healthy(data)


def test_segments_are_rolled_by_time(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    settings = LogSettings(segment_ms=1000, clean_interval_ms=0)

    async def work() -> None:
        log = await EmbeddedLog.open(data, node_id=NODE, settings=settings, clock=lambda: 5000)
        async with log:
            for time in (5000, 6000, 6001, 7000, 7002):
                await log.write([NO_OP], timestamp=time)

    run(work())
    assert segments(data) == [0, 3, 5]
    assert_healthy(data)


def test_indexes_are_what_kafka_would_build(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data, LogSettings(segment_bytes=50_000, clean_interval_ms=0)) as log:
            await write(log, 3000)

    run(work())
    first, *middle, last = sorted(metadata_log(data).glob("*.log"))
    assert len(middle) > 2
    for path in (first, *middle, last):
        index, time_index = rebuild_indexes(path)
        assert len(index) > 0 or path == last
        assert path.with_suffix(".index").read_bytes() == index
        assert path.with_suffix(".timeindex").read_bytes() == time_index


def test_snapshot_lets_old_segments_go(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data, SMALL) as log:
            await write(log, 300)
            first = await snapshot(log)
            await write(log, 300)
            second = await snapshot(log)
            await write(log, 100)
            before = segments(data)
            assert await log.delete_before(second)
            assert log.log_start_offset == second.end_offset
            assert segments(data) == [
                base
                for base, following in zip(before, [*before[1:], 2**62], strict=True)
                if following > second.end_offset
            ]
            assert snapshot_ids(data) == [first, second]  # the first one as .deleted
            assert any(name.endswith(".log.deleted") for name in names(data))
            assert any(name.endswith(".checkpoint.deleted") for name in names(data))
            assert log.snapshots.ids == (second,)
            assert not await log.delete_before(second)
            assert not await log.delete_before(first)
            epochs = read_leader_epochs(metadata_log(data) / "leader-epoch-checkpoint")
            assert [(e.epoch, e.start_offset) for e in epochs] == [(1, second.end_offset)]
        assert not any(name.endswith(".deleted") for name in names(data))

    run(work())

    async def again() -> None:
        async with opened(data, SMALL) as log:
            assert log.recovery.lines() == []
            keeper = Keeper()
            await log.register(keeper).caught_up()
            assert keeper.told[0].startswith("snapshot")

    run(again())


def test_deleted_files_are_removed_after_a_while(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    settings = LogSettings(segment_bytes=10_000, clean_interval_ms=0, delete_delay_ms=20)

    async def work() -> None:
        async with opened(data, settings) as log:
            await write(log, 300)
            await log.delete_before(await snapshot(log))
            assert any(name.endswith(".deleted") for name in names(data))
            for _ in range(100):
                await asyncio.sleep(0.02)
                if not any(name.endswith(".deleted") for name in names(data)):
                    return
            raise AssertionError(names(data))

    run(work())


def test_retention_by_size_keeps_the_newest_snapshot(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    settings = LogSettings(
        segment_bytes=10_000, clean_interval_ms=0, retention_bytes=25_000, retention_ms=-1
    )

    async def work() -> None:
        async with opened(data, settings) as log:
            await write(log, 200)
            assert not await log.clean()  # there is no snapshot
            await snapshot(log)
            await write(log, 200)
            assert not await log.clean()  # there is no newer one
            second = await snapshot(log)
            await write(log, 200)
            third = await snapshot(log)
            assert await log.clean()
            assert log.log_start_offset in (second.end_offset, third.end_offset)
            size = log.view.size
            assert size < 25_000 or log.snapshots.ids == (third,)
            assert not await log.clean()

    run(work())


def test_retention_by_time_goes_by_the_age_of_the_state(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    time = 1_000_000
    settings = LogSettings(clean_interval_ms=0, retention_bytes=-1, retention_ms=1000)

    async def work() -> None:
        log = await EmbeddedLog.open(data, node_id=NODE, settings=settings, clock=lambda: time)
        async with log:
            await write(log, 10, timestamp=time)
            await snapshot(log, time=time - 2000)
            await write(log, 10, timestamp=time)
            second = await snapshot(log, time=time - 1500)
            assert await log.clean()
            # The newest stays, however old it is.
            assert log.snapshots.ids == (second,)
            assert not await log.clean()

    run(work())


def test_log_cleans_itself(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    settings = LogSettings(clean_interval_ms=20, retention_bytes=1)

    async def work() -> None:
        async with opened(data, settings) as log:
            await write(log, 10)
            await snapshot(log)
            await write(log, 10)
            second = await snapshot(log)
            for _ in range(100):
                await asyncio.sleep(0.02)
                if log.snapshots.ids == (second,):
                    return
            raise AssertionError(log.snapshots.ids)

    run(work())


def test_snapshots_are_made_only_of_what_is_committed_and_whole(tmp_path: Path) -> None:
    data = formatted(tmp_path, dynamic=True)

    async def make(log: EmbeddedLog, offset: int, epoch: int = 1) -> str | None:
        return await log.create_snapshot(
            SnapshotId(offset, epoch), [[NO_OP]], last_contained_log_timestamp=7
        )

    async def work() -> None:
        async with opened(data) as log:
            await log.write([NO_OP, NO_OP])
            with pytest.raises(SnapshotRefused, match="before 5 is committed"):
                await make(log, 6)
            with pytest.raises(SnapshotRefused, match="written in epoch 1"):
                await make(log, 5, epoch=2)
            with pytest.raises(SnapshotRefused, match="inside the batch from 3 to 4"):
                await make(log, 4)
            assert await make(log, 3) is not None
            path = await make(log, 5)
            assert path is not None
            assert await make(log, 5) is None  # there already
            with SnapshotReader(path) as reader:
                assert reader.header.last_contained_log_timestamp == 7
                assert reader.kraft_version == 1
                assert reader.voters == log.voters

    run(work())
    assert_healthy(data)


def test_snapshot_that_fails_leaves_nothing(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data) as log:
            await log.write([NO_OP])

            def broken() -> list[bytes]:
                raise ArithmeticError("no")

            with pytest.raises(ArithmeticError):
                await log.create_snapshot(
                    SnapshotId(2, 1), (broken() for _ in range(1)), last_contained_log_timestamp=1
                )
            assert not snapshot_ids(data)
            assert log.snapshots.ids == ()

    run(work())
