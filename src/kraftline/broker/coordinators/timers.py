"""Deadlines of members, rebalances and transactions, in the event loop.

A deadline that is put off again and again, as that of a session with each heartbeat, costs next to
nothing: what was set first looks, when it is over, whether the deadline has moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable


class Timers:
    """One deadline to a key."""

    def __init__(self) -> None:
        self._due: dict[Hashable, tuple[float, Callable[[], None]]] = {}
        self._armed: dict[Hashable, asyncio.TimerHandle] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._due

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Hashable, ms: float, then: Callable[[], None]) -> None:
        """Call `then` after so many ms, instead of what the key had before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max(ms, 0) / 1000
        self._due[key] = deadline, then
        armed = self._armed.get(key)
        if armed is None or armed.when() > deadline:
            if armed is not None:
                armed.cancel()
            self._armed[key] = loop.call_at(deadline, self._over, key)

    def cancel(self, key: Hashable) -> None:
        """Nothing happens for the key any more."""
        self._due.pop(key, None)
        armed = self._armed.pop(key, None)
        if armed is not None:
            armed.cancel()

    def close(self) -> None:
        """Nothing happens any more."""
        for armed in self._armed.values():
            armed.cancel()
        self._armed.clear()
        self._due.clear()

    def _over(self, key: Hashable) -> None:
        deadline, then = self._due[key]
        loop = asyncio.get_running_loop()
        if deadline > loop.time():
            self._armed[key] = loop.call_at(deadline, self._over, key)
            return
        del self._due[key], self._armed[key]
        then()
