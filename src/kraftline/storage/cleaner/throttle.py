"""A limit on what all cleaner threads read and write together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_UNLIMITED: Final = 1e15  # nobody's disk: Kafka's default is the largest number that it has


class Throttle:
    """Tells whoever did some bytes of work how long to wait for the rate to be kept."""

    def __init__(
        self, bytes_per_second: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.bytes_per_second = bytes_per_second
        self._clock = clock
        self._lock = threading.Lock()
        # When what was done so far would be over, at this rate.
        self._paid_until = 0.0

    def did(self, size: int) -> float:
        """Seconds to wait; 0 where none."""
        rate = self.bytes_per_second
        if rate >= _UNLIMITED:
            return 0.0
        with self._lock:
            now = self._clock()
            self._paid_until = max(self._paid_until, now) + size / max(rate, 1.0)
            return self._paid_until - now
