"""A process that is killed at any moment: what it acknowledged is there, in order, once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from kraftline.storage.log import Logs
from tests.effort import rounds
from tests.storage.log.logs import assert_healthy, log_directory, records_of
from tests.storage.log.writer import CONFIG, PARTITIONS

ROOT = Path(__file__).parents[3]


def run_and_kill(data: Path, seed: int, lifetime: float) -> dict[tuple[int, int], int]:
    """Let a writer live so long after its first line; numbers by partition and offset."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.log.writer", str(data), str(seed)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, "the writer did not start"
    time.sleep(lifetime)
    process.kill()
    lines = (first + process.stdout.read()).decode().split("\n")
    process.stdout.close()
    process.wait()
    # The last line may be torn by the kill; the others are acknowledgements.
    rows = [tuple(map(int, line.split())) for line in lines[:-1]]
    return {(partition, offset): number for partition, offset, number in rows}


def test_acknowledged_records_survive_kill(tmp_path: Path) -> None:
    data = log_directory(tmp_path / "data")
    pick = random.Random(7)
    acknowledged: dict[tuple[int, int], int] = {}
    for seed in range(1, rounds(5) + 1):
        made = run_and_kill(data, seed, pick.uniform(0, 0.5))
        assert made
        acknowledged |= made
        logs = Logs.open(data, lambda topic: CONFIG)
        assert not logs.was_clean
        for partition in range(PARTITIONS):
            log = logs.get("t", partition)
            assert log is not None
            for cut in log.opening.cuts:
                assert cut.batches == 0, cut  # nothing whole may go
            records = records_of(log, log.start_offset)
            offsets = [record.offset for record in records]
            assert offsets == list(range(log.start_offset, log.end_offset))
            numbers = [int(record.value or b"") for record in records]
            assert numbers == sorted(set(numbers))
            there = dict(zip(offsets, numbers, strict=True))
            for (of, offset), number in acknowledged.items():
                if of == partition and offset >= log.start_offset:
                    assert there[offset] == number
        logs.close()
        assert_healthy(data)
