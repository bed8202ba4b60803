"""Opening a log after a crash or damage: what is good stays, what goes is told."""

from __future__ import annotations

import multiprocessing
import random
import shutil
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.raft import EmbeddedLog, LogRefused, LogSettings
from kraftline.storage.checkpoints import EpochStart, write_leader_epochs
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.names import SnapshotId
from kraftline.storage.quorum_state import read_quorum_state
from tests.effort import rounds
from tests.raft.logs import (
    NO_OP,
    NODE,
    QUIET,
    Keeper,
    assert_healthy,
    controls,
    formatted,
    metadata_log,
    names,
    opened,
    run,
    topic,
    values,
)

SMALL = LogSettings(segment_bytes=5_000, clean_interval_ms=0)
FIXTURES = Path(__file__).parents[1] / "fixtures"


async def write(data: Path, count: int, settings: LogSettings = QUIET, start: int = 0) -> None:
    async with opened(data, settings) as log:
        for n in range(start, start + count):
            log.append([topic(n)])
        await log.commit()


async def reopen(data: Path, settings: LogSettings = QUIET) -> EmbeddedLog:
    async with await EmbeddedLog.open(data, node_id=NODE, settings=settings) as log:
        await log.write([NO_OP])
    return log


def first_segment(data: Path) -> Path:
    return metadata_log(data) / "00000000000000000000.log"


def test_half_written_tail_is_cut_off_and_reported(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 10))
    path = first_segment(data)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    log = run(reopen(data))
    (cut,) = log.recovery.cuts
    assert (cut.file, cut.offset, cut.reason) == (str(path), 10, "a batch that is half written")
    assert cut.position + cut.length == len(whole) - 7
    assert cut.batches == 0
    assert "offset 10 was expected: a batch that is half written" in log.recovery.lines()[0]
    assert values(data) == [*(topic(n) for n in range(9)), NO_OP]
    assert_healthy(data)


def test_zeros_after_the_end_are_cut_off(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 10))
    with first_segment(data).open("ab") as file:
        file.write(bytes(5000))
    log = run(reopen(data))
    (cut,) = log.recovery.cuts
    assert (cut.length, cut.offset, cut.reason) == (5000, 11, "zeros, which were never written")
    assert values(data) == [*(topic(n) for n in range(10)), NO_OP]
    assert_healthy(data)


def test_damage_in_the_middle_says_what_went_with_it(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 200, SMALL))
    segments = sorted(metadata_log(data).glob("*.log"))
    assert len(segments) > 2
    damaged = bytearray(segments[1].read_bytes())
    damaged[1000] ^= 1
    segments[1].write_bytes(damaged)
    log = run(reopen(data, SMALL))
    cut, *following = log.recovery.cuts
    assert cut.file == str(segments[1])
    assert cut.reason == "a batch whose checksum is wrong"
    assert cut.batches > 0
    assert [each.file for each in following] == [str(path) for path in segments[2:]]
    assert following[-1].last_offset == 200
    assert "good batches up to offset" in log.recovery.lines()[0]
    assert values(data) == [*(topic(n) for n in range(cut.offset - 1)), NO_OP]
    assert_healthy(data)


def test_every_cut_of_the_last_batches_is_survived(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 5))
    whole = first_segment(data).read_bytes()
    pick = random.Random(1)
    for n in range(rounds(15)):
        copy = tmp_path / f"copy-{n}"
        shutil.copytree(data, copy)
        size = pick.randrange(len(whole))
        torn = whole[:size] + bytes(pick.choice((0, 0, 100)))
        first_segment(copy).write_bytes(torn)
        log = run(reopen(copy))
        kept = values(copy)[:-1]
        assert kept == [topic(i) for i in range(len(kept))]
        assert log.recovery.end_offset <= 6
        assert log.epoch == 2  # the quorum state knows, whatever the log has lost
        assert_healthy(copy)
        shutil.rmtree(copy)


def test_missing_segment_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 200, SMALL))
    second = sorted(metadata_log(data).glob("*.log"))[1]
    second.unlink()
    before = {path: path.stat().st_size for path in metadata_log(data).glob("*.log")}
    with pytest.raises(LogRefused, match="A segment is missing"):
        run(reopen(data, SMALL))
    assert {path: path.stat().st_size for path in metadata_log(data).glob("*.log")} == before


def test_log_without_its_snapshot_is_refused(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 200, SMALL))
    first_segment(data).unlink()
    with pytest.raises(LogRefused, match="there is no snapshot of the state up to there"):
        run(reopen(data, SMALL))


def test_log_that_ends_before_its_snapshot_starts_anew_there(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data) as log:
            await log.write([topic(1)])
            await log.write([topic(2)])
            await log.create_snapshot(
                SnapshotId(3, 1), [[topic(1), topic(2)]], last_contained_log_timestamp=1
            )

    run(work())
    first_segment(data).write_bytes(first_segment(data).read_bytes()[:100])

    async def again() -> None:
        async with opened(data) as log:
            assert log.log_start_offset == 3
            assert any("it starts anew there" in line for line in log.recovery.lines())
            keeper = Keeper()
            await log.register(keeper).caught_up()
            assert keeper.values == [topic(1), topic(2)]
            assert log.epoch == 2

    run(again())
    assert_healthy(data, payloads=False)


def test_log_that_is_all_in_a_snapshot_is_kept(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        async with opened(data) as log:
            await log.write([topic(1)])
            id = SnapshotId(2, 1)
            await log.create_snapshot(id, [[topic(1)]], last_contained_log_timestamp=1)
            await log.delete_before(id)

    run(work())
    log = run(reopen(data))
    assert log.recovery.lines() == []
    assert values(data) == [topic(1), NO_OP]
    assert log.epoch == 2
    assert_healthy(data, payloads=False)


def test_lost_and_wrong_companions_are_made_again(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 300, SMALL))
    before = {name: (metadata_log(data) / name).read_bytes() for name in names(data)}
    for n, name in enumerate(names(data)):
        path = metadata_log(data) / name
        if path.suffix in (".index", ".timeindex", ".snapshot"):
            if n % 3 == 0:
                path.unlink()
            else:
                path.write_bytes(b"\xff" * 24)
    (metadata_log(data) / "leader-epoch-checkpoint").write_text("what?")
    (metadata_log(data) / "partition.metadata").unlink()
    log = run(reopen(data, SMALL))
    assert any("made anew from the batches" in line for line in log.recovery.lines())
    assert not log.recovery.cuts
    after = {name: (metadata_log(data) / name).read_bytes() for name in names(data)}
    changed = {name for name in before if after.get(name) != before[name]}
    bases = sorted(name for name in before if name.endswith(".log"))
    last = bases[-1].removesuffix(".log")
    assert {name for name in changed if not name.startswith(last)} == {
        "quorum-state",
        "leader-epoch-checkpoint",
    }
    assert_healthy(data)


def test_leftovers_are_removed(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(write(data, 3))
    leftovers = [
        "00000000000000000000.log.deleted",
        "00000000000000000007.index",
        "00000000000000000002-0000000001-123.checkpoint.part",
        "00000000000000000001-0000000001.checkpoint.deleted",
    ]
    for name in leftovers:
        (metadata_log(data) / name).write_bytes(b"")
    run(reopen(data))
    assert not set(leftovers) & set(names(data))
    assert_healthy(data)


def test_epoch_without_records_is_used_up(tmp_path: Path) -> None:
    """A crash after the quorum state was written, before the first record of the epoch was."""
    data = formatted(tmp_path)
    run(write(data, 3))
    state = metadata_log(data) / "quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":5'))
    write_leader_epochs(
        metadata_log(data) / "leader-epoch-checkpoint", [EpochStart(1, 0), EpochStart(5, 4)]
    )
    run(reopen(data))
    assert [(offset, epoch) for offset, epoch, _ in controls(data)] == [(0, 1), (4, 6)]
    text = (metadata_log(data) / "leader-epoch-checkpoint").read_text()
    assert text == "0\n2\n1 0\n6 4\n"


def _hold(path: str, ready: multiprocessing.synchronize.Event) -> None:
    async def hold() -> None:
        async with await EmbeddedLog.open(path, node_id=NODE):
            ready.set()
            import asyncio

            await asyncio.sleep(3600)

    run(hold())


def test_second_open_is_refused(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def twice() -> None:
        async with opened(data) as log:
            with pytest.raises(LogRefused, match="open in this process already"):
                await EmbeddedLog.open(data, node_id=NODE)
            await log.write([NO_OP])
        # A refused one must not have dropped the first one's lock, nor kept anything.
        async with opened(data):
            pass

    run(twice())
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=_hold, args=(str(data), ready))
    other.start()
    try:
        assert ready.wait(30)
        with pytest.raises(NotKafka, match="another process owns this log directory"):
            run(reopen(data))
    finally:
        other.kill()
        other.join()
    run(reopen(data))
    assert_healthy(data)


def test_lock_of_the_caller_is_used_and_left_alone(tmp_path: Path) -> None:
    data = formatted(tmp_path)

    async def work() -> None:
        with DirectoryLock(data) as lock:
            async with await EmbeddedLog.open(data, node_id=NODE, lock=lock) as log:
                await log.write([NO_OP])
            assert lock._fd is not None

    run(work())


@pytest.mark.parametrize("fixture", ["aborted_4_3", "killed_4_3", "metadata_3_9"])
def test_directory_of_real_kafka_goes_on(tmp_path: Path, fixture: str) -> None:
    data = tmp_path / "node-1"
    shutil.copytree(FIXTURES / fixture / "data" / "node-1", data)
    for path in data.rglob("*"):
        path.chmod(0o700)
    before = values(data)
    state = read_quorum_state(metadata_log(data) / "quorum-state")
    log = run(reopen(data))
    assert log.recovery.lines() == []
    assert log.epoch == state.leader_epoch + 1
    assert values(data) == [*before, NO_OP]
    # Indexes that Kafka would not have touched are as they were; ours continue them.
    assert_healthy(metadata_log(data))


def test_directory_of_a_larger_quorum_is_refused(tmp_path: Path) -> None:
    for fixture in ("metadata_3_3", "upgraded_4_3"):
        data = tmp_path / fixture
        shutil.copytree(FIXTURES / fixture / "data" / "node-1", data)
        with pytest.raises(LogRefused, match="voters"):
            run(reopen(data))
