"""How much there was per second lately, sampled as Kafka samples: sums of some windows, of which
those that are long over no longer count."""

from __future__ import annotations

import math

import msgspec


class Windows(msgspec.Struct, frozen=True):
    """`count` windows of `size_ms`: all but the last are whole."""

    count: int = 11
    size_ms: int = 1000


class _Sample:
    __slots__ = ("events", "last_ms", "start_ms", "value")

    def __init__(self, now: int) -> None:
        self.reset(now)

    def reset(self, now: int) -> None:
        self.start_ms = self.last_ms = now
        self.events = 0
        self.value = 0.0


class Rate:
    """Of one client; times are in ms."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    @property
    def last_ms(self) -> int:
        """When something was counted last."""
        return max((each.last_ms for each in self._samples), default=0)

    def record(self, value: float, now: int) -> None:
        if not self._samples:
            self._samples.append(_Sample(now))
        sample = self._samples[self._current]
        if now - sample.start_ms >= self._windows.size_ms:
            sample = self._next(now)
        sample.value += value
        sample.events += 1
        sample.last_ms = now

    def per_second(self, now: int) -> float:
        self._forget_old(now)
        total = sum([each.value for each in self._samples])
        return total / (self._span_ms(now) / 1000)

    def throttle_ms(self, bound: float, now: int) -> int:
        """How long nothing more may come for the rate to be the bound again; 0 where it is not
        above it."""
        rate = self.per_second(now)
        if rate <= bound:
            return 0
        return math.floor((rate - bound) / bound * self._span_ms(now) + 0.5)

    def _next(self, now: int) -> _Sample:
        # One more than there are windows: the oldest may reach into the time that counts.
        self._current = (self._current + 1) % (self._windows.count + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now))
        else:
            self._samples[self._current].reset(now)
        return self._samples[self._current]

    def _forget_old(self, now: int) -> None:
        age = self._windows.count * self._windows.size_ms
        for each in self._samples:
            if now - each.last_ms >= age:
                each.reset(now)

    def _span_ms(self, now: int) -> int:
        """The time that the sums are of, counting at least as many whole windows as are kept."""
        self._forget_old(now)
        oldest = min([each.start_ms for each in self._samples], default=now)
        elapsed = now - oldest
        lacking = self._windows.count - 1 - elapsed // self._windows.size_ms
        if lacking > 0:
            elapsed += lacking * self._windows.size_ms
        return max(elapsed, 1)
