"""Appends: together or not at all, acknowledged only when durable, refused after a failure."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kraftline.raft import AppendTooLarge, Backlogged, EmbeddedLog, LogClosed, LogFailed
from kraftline.raft.settings import MAX_BATCH_BYTES, LogSettings
from kraftline.storage.segment import SegmentReader
from tests.raft.logs import QUIET, assert_healthy, formatted, metadata_log, opened, run, values


def test_append_gives_offsets_at_once_and_commit_makes_them_durable(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data) as log:
            first = log.append([b"a", b"b"], timestamp=5)
            second = log.append([b"c"], timestamp=6)
            assert (first.base_offset, first.end_offset, first.epoch) == (1, 3, 1)
            assert (second.base_offset, second.end_offset) == (3, 4)
            assert (log.high_watermark, log.end_offset) == (1, 4)
            await log.commit(first.end_offset)
            assert log.high_watermark == 4  # they shared the flush
            assert values(data) == [b"a", b"b", b"c"]

    run(work())
    with SegmentReader(metadata_log(data) / "00000000000000000000.log") as reader:
        batches = [batch for batch, _ in reader.batches()]
    assert [(b.base_offset, b.count, b.base_timestamp, b.max_timestamp) for b in batches[1:]] == [
        (1, 2, 5, 5),
        (3, 1, 6, 6),
    ]
    assert [record.timestamp for record in batches[1].records()] == [5, 5]


def test_many_waiters_share_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = 0
    real = os.fsync

    def counted(fd: int) -> None:
        nonlocal flushes
        flushes += 1
        real(fd)

    async def work() -> None:
        nonlocal flushes
        async with opened(formatted(tmp_path)) as log:
            monkeypatch.setattr(os, "fsync", counted)
            await asyncio.gather(*(log.write([b"x"]) for _ in range(500)))
            assert flushes <= 3

    run(work())


def test_too_large_an_append_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data) as log:
            with pytest.raises(AppendTooLarge, match="8,388,608"):
                log.append([bytes(MAX_BATCH_BYTES // 8)] * 8)
            largest = log.append([bytes(MAX_BATCH_BYTES - 61 - 14)])
            assert largest.size == MAX_BATCH_BYTES - 1 or largest.size <= MAX_BATCH_BYTES
            with pytest.raises(AppendTooLarge):
                log.append([bytes(MAX_BATCH_BYTES - 61)])
            await log.commit()
            assert log.end_offset == 2

    run(work())
    assert_healthy(data, payloads=False)


def test_nothing_is_appended_without_records(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(formatted(tmp_path)) as log:
            with pytest.raises(ValueError, match="no records"):
                log.append([])
            with pytest.raises(ValueError, match="has not been appended"):
                await log.commit(100)

    run(work())


def test_backlog_is_bounded(tmp_path: Path) -> None:
    settings = LogSettings(max_pending_bytes=10_000, clean_interval_ms=0)
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data, settings) as log:
            appended = 9
            for _ in range(appended):
                log.append([bytes(1000)])
            with pytest.raises(Backlogged, match="wait for the disk"):
                log.append([bytes(1000)])
            await log.room()
            log.append([bytes(1000)])
            await asyncio.gather(*(log.write([bytes(1000)]) for _ in range(100)))
            assert log.end_offset == 1 + appended + 1 + 100

    run(work())
    assert_healthy(data, payloads=False)


def fail_with(number: int) -> Any:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(("call", "number"), [("fsync", errno.EIO), ("writev", errno.ENOSPC)])
def test_failed_disk_acknowledges_nothing_and_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        log = await EmbeddedLog.open(data, node_id=1, settings=QUIET)
        await log.write([b"kept"])
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail_with(number))
            log.append([b"perhaps"])
            waiting = [asyncio.create_task(log.commit()) for _ in range(3)]
            for done in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(done, LogFailed)
                assert os.strerror(number) in str(done)
        # The disk works again, but what is on it is not known: nothing goes on.
        with pytest.raises(LogFailed):
            log.append([b"more"])
        with pytest.raises(LogFailed):
            await log.write([b"more"])
        assert log.high_watermark == 2
        await log.close()

    run(work())

    async def again() -> None:
        async with opened(data) as log:
            await log.write([b"after"])

    run(again())
    assert [value for value in values(data) if value != b"perhaps"] == [b"kept", b"after"]
    assert_healthy(data, payloads=False)


def test_disk_that_fills_within_a_batch_leaves_no_torn_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = formatted(tmp_path)
    real = os.writev

    def half(fd: int, buffers: list[bytes]) -> int:
        if len(buffers[0]) > 50:
            return real(fd, [bytes(buffers[0])[:50]])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def work() -> None:
        log = await EmbeddedLog.open(data, node_id=1, settings=QUIET)
        await log.write([b"kept"])
        with monkeypatch.context() as patch:
            patch.setattr(os, "writev", half)
            with pytest.raises(LogFailed, match="No space left"):
                await log.write([b"t"])
        await log.close()
        async with opened(data) as log:
            (cut,) = log.recovery.cuts
            assert (cut.offset, cut.length, cut.reason) == (2, 50, "a batch that is half written")
            await log.write([b"after"])

    run(work())
    assert values(data) == [b"kept", b"after"]
    assert_healthy(data, payloads=False)


def test_closed_log_takes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        log = await EmbeddedLog.open(formatted(tmp_path), node_id=1)
        log.append([b"before"])
        await log.close()
        await log.close()
        assert log.high_watermark == 2
        with pytest.raises(LogClosed):
            log.append([b"after"])

    run(work())


def test_control_records_go_the_same_way(tmp_path: Path) -> None:
    from kraftline.schema.control.kraft_version_record import KRaftVersionRecord

    async def work() -> None:
        async with opened(formatted(tmp_path)) as log:
            appended = log.append_control([KRaftVersionRecord(kraft_version=0)])
            await log.commit(appended.end_offset)
            assert log.high_watermark == 2

    run(work())
