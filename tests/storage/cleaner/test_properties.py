"""What holds of every cleaned log, whatever was written and however often it was cleaned."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftline import kernels
from kraftline.records import Batch, Codec, Record, batches, build_batch
from kraftline.storage.cleaner import filtering, offset_map
from kraftline.storage.cleaner.kernel import active
from kraftline.storage.log import PartitionLog, log_config
from tests.effort import rounds
from tests.storage.cleaner.dirty_logs import CONFIG
from tests.storage.cleaner.rounds import clean
from tests.storage.log.logs import NOW, Clock, records_of

INTERPRETED = kernels.interpreted("kraftline.storage.cleaner._kernel")


class Produced(NamedTuple):
    """A batch of (key, value) with a codec; `roll` closes the segment behind it."""

    pairs: list[tuple[bytes, bytes | None]]
    codec: Codec
    roll: bool


keys = st.sampled_from([b"", b"a", b"b", b"cc", b"d" * 40])
values = st.one_of(st.none(), st.binary(max_size=20))
produced = st.builds(
    Produced,
    st.lists(st.tuples(keys, values), min_size=1, max_size=6),
    st.sampled_from(Codec),
    st.booleans(),
)
# A number is a cleaning, so many ms later.
steps = st.lists(st.one_of(produced, st.sampled_from([0, 1000])), max_size=25)


def use(kernel: object, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(offset_map, "kernel", kernel)
    patched.setattr(filtering, "kernel", kernel)


def told(directory: Path, steps: list[Produced | int], memory: int) -> list[Batch]:
    """Do the steps, with what must hold after each; the batches that are there in the end."""
    clock = Clock()
    config = log_config({**CONFIG, "delete.retention.ms": "500", "internal.segment.bytes": "600"})
    log = PartitionLog.open(directory / "t-0", config, clock=clock)
    everything: dict[int, Record] = {}
    checkpoint: int | None = None
    for step in steps:
        if isinstance(step, Produced):
            records = [Record(n, clock.now, *pair) for n, pair in enumerate(step.pairs)]
            first = log.append(bytearray(build_batch(records, codec=step.codec)), 0).first_offset
            for n, pair in enumerate(step.pairs):
                everything[first + n] = Record(first + n, clock.now, *pair)
            log.update_high_watermark(log.end_offset)
            if step.roll:
                log.roll()
        else:
            clock.now += step
            bound = log.segments[-1].base_offset
            if bound == (checkpoint or 0):
                continue
            checkpoint = clean(log, checkpoint, clock.now, memory).end
            assert checkpoint <= bound
        found = {record.offset: record for record in records_of(log)}
        # Offsets, times, keys and values never change.
        assert all(everything[offset] == record for offset, record in found.items())
        # The last value of each key is there; a tombstone may be gone, and nothing came back.
        latest = {record.key: record for record in everything.values()}
        left = {record.key: record for record in found.values()}
        for key, record in latest.items():
            assert left.get(key, record) == record
            assert key in left or record.value is None
        # What was never cleaned is all there.
        assert [o for o in found if o >= (checkpoint or 0)] == [
            o for o in everything if o >= (checkpoint or 0)
        ]
        # And what was has each key once, but for tombstones that wait.
        below = [r.key for o, r in found.items() if o < (checkpoint or 0)]
        assert len(below) == len(set(below))
    log.close()
    return [
        batch
        for path in sorted((directory / "t-0").glob("*.log"))
        for batch in batches(path.read_bytes())
    ]


@settings(max_examples=rounds(40), deadline=None)
@given(steps, st.sampled_from([24 * 1000, 24 * 3]))
def test_the_last_value_of_each_key_survives(steps: list[Produced | int], memory: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        told(Path(root), steps, memory)


@settings(max_examples=rounds(15), deadline=None)
@given(steps, st.sampled_from([24 * 1000, 24 * 3]))
def test_both_kernels_clean_alike(steps: list[Produced | int], memory: int) -> None:
    made = []
    for kernel in (active, INTERPRETED):
        with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patched:
            use(kernel, patched)
            made.append([bytes(batch.data) for batch in told(Path(root), steps, memory)])
    assert made[0] == made[1]


def test_a_key_of_any_length_is_found_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Around the words that a hash is made of."""
    for kernel in (active, INTERPRETED):
        use(kernel, monkeypatch)
        config = log_config(CONFIG)
        log = PartitionLog.open(tmp_path / f"{kernel.__name__}-0", config, clock=Clock())
        for value in (b"old", b"new"):
            for size in range(40):
                log.append(bytearray(build_batch([Record(0, NOW, b"x" * size, value)])), 0)
        log.roll()
        log.update_high_watermark(log.end_offset)
        clean(log, None, NOW)
        assert [(record.key, record.value) for record in records_of(log)] == [
            (b"x" * size, b"new") for size in range(40)
        ]
        log.close()


@pytest.mark.parametrize("room", [100_000, 5000])
def test_the_map_grows_up_to_its_limit(room: int, tmp_path: Path) -> None:
    """And where that is reached, further rounds do the rest."""
    config = log_config({**CONFIG, "internal.segment.bytes": "200000"})
    log = PartitionLog.open(tmp_path / "t-0", config, clock=Clock())
    for value in (b"old", b"new"):
        for first in range(0, 12_000, 500):
            records = [Record(n, NOW, b"%d" % (first + n), value) for n in range(500)]
            log.append(bytearray(build_batch(records)), 0)
    log.roll()
    log.update_high_watermark(log.end_offset)
    cleaned, turns = 0, 0
    while cleaned < log.end_offset:
        made = clean(log, cleaned, NOW, 24 * room)
        assert made.end > cleaned
        cleaned, turns = made.end, turns + 1
    assert turns == (1 if room == 100_000 else 6)
    assert [(record.key, record.value) for record in records_of(log)] == [
        (b"%d" % n, b"new") for n in range(12_000)
    ]
    log.close()
