"""A coordinator's partition in memory, and time that passes when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.broker.coordinators.shard import Shard
from kraftline.config.effective import Config
from kraftline.controller.refusal import Refusal
from kraftline.records.record import Codec
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import OFFSETS
from kraftline.storage.log.batch_fields import BatchFields
from kraftline.storage.log.partition_log import Appended
from tests.groups.states import NOW, empty_state, loaded_from

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its clock stands still until it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.run_until_complete(wait())

    def advance(self, ms: float) -> None:
        """Let time pass, timer after timer."""
        end = self.now + ms / 1000
        while True:
            due = [each.when() for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]  # what the loop waits for
            following = min((when for when in due if when <= end), default=None)
            if following is None:
                break
            self.now = max(self.now, following)
            self.settle()
        self.now = end
        self.settle()

    def settle(self) -> None:
        """Whatever can happen now has happened."""
        for _ in range(5):
            self.run(asyncio.sleep(0))


class MemoryShard(Shard[GroupsState]):
    """Batches as they would be in a log; while it `fails` none is taken."""

    def __init__(self, loop: VirtualLoop, batches: list[bytes]) -> None:
        self.topic = OFFSETS
        self.number = 0
        self.epoch = 0
        self.clock = lambda: NOW + int(loop.now * 1000)
        self.state = None
        self.is_closed = False
        self.batches = batches
        self.fails = False
        self._end = sum(1 + int.from_bytes(each[23:27], "big") for each in batches)
        self._codec = Codec.NONE
        self._unasked = set()

    def __repr__(self) -> str:
        return "MemoryShard"

    def append(self, data: bytearray, made: BatchFields | None = None) -> Appended:
        if self.fails:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None)
        data[:8] = self._end.to_bytes(8, "big")
        self.batches.append(bytes(data))
        first = self._end
        self._end += 1 + int.from_bytes(data[23:27], "big")
        return Appended(first, self._end - 1, -1, 0, False, False, False)

    def settled(self, appended: Appended) -> None:
        return None


def started(loop: VirtualLoop, batches: list[bytes], config: Config) -> GroupsState:
    """The state of a partition that was just begun to be led."""

    async def begin() -> GroupsState:
        shard: Any = MemoryShard(loop, batches)
        state = loaded_from(batches, empty_state(config, shard)).state
        shard.state = state
        state.loaded()
        return state

    return loop.run(begin())
