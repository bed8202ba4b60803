"""A process that is killed at any moment: what it acknowledged is there when it comes back."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from kraftline.raft import EmbeddedLog
from kraftline.storage.names import parse_segment_file
from tests.effort import rounds
from tests.raft.appender import SETTINGS
from tests.raft.logs import (
    NODE,
    Keeper,
    assert_healthy,
    controls,
    formatted,
    names,
    numbered,
    run,
    topic,
)

ROOT = Path(__file__).parents[2]


def run_and_kill(data: Path, seed: int, lifetime: float) -> dict[int, int]:
    """Let an appender live so long after its first acknowledgement; offsets and numbers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.raft.appender", str(data), str(seed)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, "the appender did not start"
    time.sleep(lifetime)
    process.kill()
    lines = (first + process.stdout.read()).decode().split("\n")
    process.stdout.close()
    process.wait()
    # The last line may be torn by the kill; the others are acknowledgements.
    pairs = [line.split() for line in lines[:-1]]
    return {int(offset): int(number) for offset, number in pairs}


def log_start(data: Path) -> int:
    found = [parse_segment_file(name) for name in names(data)]
    return min(each.offset for each in found if each is not None and each.kind.value == ".log")


async def reopen(data: Path) -> tuple[EmbeddedLog, Keeper]:
    keeper = Keeper()
    async with await EmbeddedLog.open(data, node_id=NODE, settings=SETTINGS) as log:
        await log.register(keeper).caught_up()
    return log, keeper


def test_acknowledged_records_survive_kill(tmp_path: Path) -> None:
    data = formatted(tmp_path, dynamic=True)
    pick = random.Random(7)
    acknowledged: dict[int, int] = {}
    epochs = []
    for seed in range(1, rounds(5) + 1):
        made = run_and_kill(data, seed, pick.uniform(0, 0.4))
        assert made
        acknowledged |= made
        log, keeper = run(reopen(data))
        for cut in log.recovery.cuts:
            assert cut.batches == 0, cut  # nothing whole may go
        epochs.append(log.epoch)
        there = dict(numbered(data))
        start = log_start(data)
        for offset, number in acknowledged.items():
            assert offset < start or there[offset] == topic(number)
        assert set(keeper.values) <= set(there.values()) | set(keeper.values[:1])
        assert_healthy(data, payloads=False)
    assert epochs == [2 * n for n in range(1, len(epochs) + 1)]
    # Within the log, epochs only rise, and each begins with its leader change.
    written = [epoch for _, epoch, kind in controls(data) if kind == 2]
    assert written == sorted(set(written))
