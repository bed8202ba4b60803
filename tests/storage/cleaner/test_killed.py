"""A process that is killed while it cleans: the last value of each key is there, or a later one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from kraftline.storage.checkpoints import CLEANER_OFFSETS
from kraftline.storage.log import Logs
from tests.effort import rounds
from tests.storage.cleaner.killed_writer import SETTINGS
from tests.storage.log.logs import assert_healthy, log_directory, records_of

ROOT = Path(__file__).parents[3]


def run_and_kill(data: Path, seed: int, lifetime: float) -> dict[bytes, int]:
    """Let the writer live for so long after its first line; what it acknowledged last, by key."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.cleaner.killed_writer", str(data), str(seed)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, "the writer did not start"
    time.sleep(lifetime)
    process.kill()
    lines = (first + process.stdout.read()).decode().split("\n")[:-1]
    process.stdout.close()
    process.wait()
    found = {}
    for line in lines:
        key, number = line.split()
        found[f"key-{key}".encode()] = int(number)
    return found


def test_acknowledged_values_survive_a_kill(tmp_path: Path) -> None:
    data = log_directory(tmp_path / "data")
    pick, cleaned = random.Random(3), 0
    acknowledged: dict[bytes, int] = {}
    for seed in range(1, rounds(4) + 1):
        acknowledged |= run_and_kill(data, seed, pick.uniform(0.1, 0.8))
        cleaned += (data / CLEANER_OFFSETS).exists()
        logs = Logs.open(data, lambda topic: SETTINGS)
        log = logs.get("t", 0)
        assert log is not None
        assert all(cut.batches == 0 for cut in log.opening.cuts)
        last = {record.key: record.value or b"" for record in records_of(log)}
        for key, number in acknowledged.items():
            assert int(last[key].split()[0]) >= number
        logs.close()
        assert_healthy(data)
    assert cleaned
