"""Idempotent producers and transactions, as far as a partition's log knows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.records.control import build_end_txn_batch
from kraftline.storage.log import (
    Appended,
    AppendRefused,
    ErrorCode,
    LogConfig,
    Origin,
    PartitionLog,
    Stopped,
)
from kraftline.storage.names import MAX_INT
from kraftline.storage.producer_snapshot import read_producer_snapshot
from kraftline.storage.txn_index import AbortedTxn
from tests.storage.log.logs import NOW, Clock, one

HOUR = 3_600_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> PartitionLog:
    return PartitionLog.open(tmp_path / "t-0", LogConfig(), clock=clock)


def send(
    log: PartitionLog,
    sequence: int,
    *,
    count: int = 1,
    id: int = 5,
    epoch: int = 0,
    transactional: bool = False,
) -> Appended:
    data = one(count=count, producer=(id, epoch, sequence), transactional=transactional)
    return log.append(data, 0)


def end(
    log: PartitionLog, *, commit: bool, id: int = 5, epoch: int = 0, coordinator: int = 1
) -> int:
    marker = build_end_txn_batch(
        commit=commit,
        base_offset=0,
        timestamp=NOW,
        producer_id=id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator,
    )
    return log.append(marker, 0, Origin.COORDINATOR).first_offset


def refusal(log: PartitionLog, sequence: int, **fields: int) -> ErrorCode:
    before = log.end_offset
    with pytest.raises(AppendRefused) as refused:
        send(log, sequence, **fields)  # type: ignore[arg-type]  # forwarded
    assert log.end_offset == before
    return refused.value.code


def reopened(log: PartitionLog, *, clean: bool) -> PartitionLog:
    stopped = Stopped(clean, log.recovery_point)
    log.close() if clean else log.release()
    return PartitionLog.open(log.directory, log.config, stopped=stopped, clock=log._clock)


def test_duplicates_of_the_last_five_batches_get_their_offsets_again(log: PartitionLog) -> None:
    for n in range(7):
        send(log, 2 * n, count=2)
    for n in range(2, 7):
        again = send(log, 2 * n, count=2)
        assert again.is_duplicate
        assert (again.first_offset, again.last_offset) == (2 * n, 2 * n + 1)
    assert refusal(log, 2, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 14


def test_sequences_follow_each_other(log: PartitionLog) -> None:
    send(log, 0, count=3)
    assert refusal(log, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 1, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 3)


def test_a_producer_that_is_not_known_may_begin_anywhere(log: PartitionLog) -> None:
    send(log, 77)
    send(log, 78)


def test_sequences_begin_again_after_the_largest(log: PartitionLog) -> None:
    send(log, MAX_INT - 1, count=2)
    send(log, 0)
    again = send(log, MAX_INT - 1, count=2)
    assert (again.is_duplicate, again.first_offset) == (True, 0)


def test_a_batch_may_span_the_largest_sequence(log: PartitionLog) -> None:
    send(log, MAX_INT, count=3)
    assert log.producers.all()[0].last_sequence == 1
    send(log, 2)
    assert send(log, MAX_INT, count=3).is_duplicate


def test_a_new_epoch_begins_at_zero(log: PartitionLog) -> None:
    send(log, 0, epoch=1)
    assert refusal(log, 1, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=2)
    assert refusal(log, 1, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_producers_are_known_after_a_restart(log: PartitionLog, clean: bool) -> None:
    send(log, 0, count=4)
    log.flush()
    send(log, 4, count=2)
    log = reopened(log, clean=clean)
    again = send(log, 4, count=2)
    assert (again.is_duplicate, again.first_offset) == (True, 4)
    assert refusal(log, 7) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 6)


def test_silent_producers_are_forgotten(log: PartitionLog, clock: Clock) -> None:
    send(log, 0)
    send(log, 0, id=6, transactional=True)
    clock.now += 24 * HOUR
    log.expire_producers()
    # One with an open transaction is not.
    assert [producer.id for producer in log.producers.all()] == [6]
    send(log, 50)


def test_silent_producers_do_not_come_back_from_a_snapshot(log: PartitionLog, clock: Clock) -> None:
    send(log, 0)
    clock.now += 24 * HOUR
    assert len(reopened(log, clean=True).producers) == 0


def test_snapshots_are_where_kafka_takes_them(log: PartitionLog) -> None:
    directory = Path(log.directory)
    send(log, 0, count=3)
    log.roll()
    send(log, 3)
    log.roll()
    log.close()
    found = sorted(path.name for path in directory.glob("*.snapshot"))
    assert found == [f"{offset:020d}.snapshot" for offset in (3, 4)]
    [entry] = read_producer_snapshot(directory / found[0])
    assert (entry.last_sequence, entry.last_offset, entry.offset_delta) == (2, 2, 2)
    log = PartitionLog.open(log.directory, log.config, stopped=Stopped(), clock=Clock())
    send(log, 4)
    log.close()
    # At the last close, and where segments begin.
    found = sorted(path.name for path in directory.glob("*.snapshot"))
    assert found == [f"{offset:020d}.snapshot" for offset in (3, 4, 5)]


def test_a_snapshot_that_cannot_be_read_is_made_again(log: PartitionLog) -> None:
    send(log, 0, count=3)
    log.roll()
    send(log, 3)
    log.close()
    path = Path(log.directory) / f"{4:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    log = PartitionLog.open(log.directory, log.config, stopped=Stopped(), clock=Clock())
    assert any("removed" in line for line in log.opening.lines())
    assert send(log, 3).is_duplicate


def test_an_open_transaction_holds_the_last_stable_offset(log: PartitionLog) -> None:
    log.append(one(), 0)
    send(log, 0, count=2, transactional=True)
    send(log, 0, id=6, transactional=True)
    log.update_high_watermark(log.end_offset)
    assert (log.high_watermark, log.last_stable_offset) == (4, 1)
    end(log, commit=True)
    # Its marker is above the high watermark: others may not have it.
    assert log.last_stable_offset == 1
    log.update_high_watermark(log.end_offset)
    assert log.last_stable_offset == 3
    end(log, commit=False, id=6)
    log.update_high_watermark(log.end_offset)
    assert log.last_stable_offset == log.end_offset == 6


def test_aborted_transactions_are_told_with_what_is_read(log: PartitionLog) -> None:
    send(log, 0, count=2, transactional=True)
    send(log, 0, id=6, transactional=True)
    end(log, commit=False)
    end(log, commit=True, id=6)
    send(log, 2, transactional=True)
    end(log, commit=False)
    log.update_high_watermark(log.end_offset)
    read = log.read_committed(0, 10_000)
    assert read.range.length == log.size
    assert read.aborted == [AbortedTxn(5, 0, 3, 2), AbortedTxn(5, 5, 6, 7)]
    assert log.read_committed(4, 10_000).aborted == [AbortedTxn(5, 5, 6, 7)]
    assert log.read_committed(7, 10_000).range.length == 0


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_transactions_are_known_after_a_restart(log: PartitionLog, clean: bool) -> None:
    send(log, 0, transactional=True)
    end(log, commit=False)
    send(log, 1, transactional=True)
    log.roll()
    send(log, 2, transactional=True)
    log = reopened(log, clean=clean)
    log.update_high_watermark(log.end_offset)
    assert log.last_stable_offset == 2
    assert log.read_committed(0, 10_000).aborted == [AbortedTxn(5, 0, 1, 2)]
    end(log, commit=False)
    log.update_high_watermark(log.end_offset)
    assert log.read_committed(3, 10_000).aborted == [AbortedTxn(5, 2, 4, 5)]


def test_a_write_outside_of_an_open_transaction_is_refused(log: PartitionLog) -> None:
    send(log, 0, transactional=True)
    assert refusal(log, 1) == ErrorCode.INVALID_TXN_STATE


def test_markers_are_held_to_epochs(log: PartitionLog) -> None:
    send(log, 0, epoch=3, transactional=True)
    with pytest.raises(AppendRefused) as refused:
        end(log, commit=True, epoch=2)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=3, coordinator=8)
    with pytest.raises(AppendRefused) as refused:
        end(log, commit=True, epoch=3, coordinator=7)
    assert refused.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_without_data_changes_nothing_but_the_producer(log: PartitionLog) -> None:
    end(log, commit=False)
    log.update_high_watermark(log.end_offset)
    assert log.last_stable_offset == 1
    assert not list(Path(log.directory).glob("*.txnindex"))
