"""A log beside a list of records: whatever is done to both, they say the same."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftline.storage.log import LogConfig, OffsetOutOfRange, PartitionLog, Stopped
from tests.effort import rounds
from tests.storage.log.logs import Clock, one, records_of, whole


class LogMachine(RuleBasedStateMachine):
    """The model: (offset, timestamp, value) of every record, and where the log starts."""

    @initialize(
        segment_bytes=st.integers(1000, 3000), interval=st.sampled_from([0, 100, 400, 4096])
    )
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.path = Path(self.temporary.name) / "t-0"
        self.clock = Clock()
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            retention_ms=50_000,
            segment_ms=20_000,
        )
        self.records: list[tuple[int, int, bytes]] = []
        self.start = 0
        self.end = 0
        self.epochs: list[tuple[int, int]] = []
        self.epoch = 0
        self.log = PartitionLog.open(self.path, self.config, clock=self.clock)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            self.temporary.cleanup()

    @rule(count=st.integers(1, 5), size=st.integers(0, 150), drift=st.integers(-3000, 3000))
    def append(self, count: int, size: int, drift: int) -> None:
        self.clock.now += 300
        value = random.Random(self.end).randbytes(size)
        timestamp = self.clock.now + drift
        done = self.log.append(one(value, count=count, timestamp=timestamp), self.epoch)
        assert (done.first_offset, done.last_offset) == (self.end, self.end + count - 1)
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.end))
        for n in range(count):
            self.records.append((self.end + n, timestamp + n, value))
        self.end += count
        self.log.update_high_watermark(self.end)

    @rule()
    def lead_again(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end

    @rule(by=st.integers(0, 30))
    def delete_records(self, by: int) -> None:
        self.start = min(self.end, self.start + by)
        self.log.advance_start(self.start)

    @rule(ms=st.integers(0, 30_000))
    def time_passes(self, ms: int) -> None:
        self.clock.now += ms
        self.log.delete_old_segments()
        # By whole segments: never a young record, and never beyond the end.
        assert self.start <= self.log.start_offset <= self.end
        young = [o for o, t, _ in self.records if self.clock.now - t <= 50_000 and o >= self.start]
        assert self.log.start_offset <= min(young, default=self.end)
        self.start = self.log.start_offset

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        stopped = Stopped(clean, self.log.recovery_point, self.start)
        if clean:
            self.log.close()
        else:
            self.log.release()
        self.log = PartitionLog.open(self.path, self.config, stopped=stopped, clock=self.clock)
        assert self.log.opening.lines() == []
        self.log.update_high_watermark(self.end)

    @rule(offset=st.integers(0, 400), max_bytes=st.integers(0, 2000), first=st.booleans())
    def read(self, offset: int, max_bytes: int, first: bool) -> None:
        if not self.start <= offset <= self.end:
            try:
                self.log.read(offset, max_bytes)
            except OffsetOutOfRange:
                return
            raise AssertionError("an offset that is not there was read")
        data = self.log.read(offset, max_bytes, at_least_one=first).read()
        assert first or len(data) <= max_bytes
        if first and offset < self.end:
            assert whole(data)

    @precondition(lambda self: self.records)
    @rule(drift=st.integers(-20_000, 4_000))
    def look_up_a_time(self, drift: int) -> None:
        timestamp = self.clock.now + drift
        there = [(o, t) for o, t, _ in self.records if o >= self.start]
        found = self.log.offset_at_time(timestamp)
        expected = next(((o, t) for o, t in there if t >= timestamp), None)
        assert (None if found is None else (found.offset, found.timestamp)) == expected

    @invariant()
    def the_same_records(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = [each for each in self.records if each[0] >= self.start]
        found = [(r.offset, r.timestamp, r.value) for r in records_of(self.log, self.start)]
        assert found == expected
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        for epoch, start in self.epochs:
            if start >= self.start and start < self.end:
                assert self.log.epochs.epoch_of(start) == epoch


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=rounds(40), stateful_step_count=40, deadline=None)
