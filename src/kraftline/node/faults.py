"""Faults on purpose, for tests of programs that use Kafka: what happens to a broker on a bad day,
when a test wants it.

- The broker is fenced, or its session ends.
- A log directory fails.
- Answers of an API come late, or the connection is gone before they come.
"""

from __future__ import annotations

import asyncio
import errno
import os
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kraftline.config.effective import suggestion
from kraftline.errors import KraftlineError
from kraftline.schema.api.registry import apis
from kraftline.server.connection import CloseConnection, Connection, Handle
from kraftline.server.parts import Answer
from kraftline.server.sending import release_all

if TYPE_CHECKING:
    from kraftline.node.node import Node

_key = struct.Struct(">h").unpack_from
_POLL: Final = 0.0005  # what a fault does is known within a few turns of the loop


class _Held:
    """What is done to answers of one API: `seconds` late, or not at all; so many times."""

    __slots__ = ("seconds", "times")

    def __init__(self, seconds: float | None, times: int | None) -> None:
        self.seconds = seconds
        self.times = times


class Faults:
    """Of one node that runs; for its event loop. What is asked for has happened on return."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._held: dict[int, _Held] = {}

    async def fence_broker(self) -> None:
        """The cluster has fenced the broker, and it stays so: it leads nothing."""
        self._node.lifecycle.fence(True)
        await _until(lambda: self._is_fenced)

    async def unfence_broker(self) -> None:
        self._node.lifecycle.fence(False)
        await _until(lambda: not self._is_fenced)

    async def expire_session(self) -> None:
        """The controller has heard nothing of the broker for too long, and fences it; with its next
        heartbeat it is back, as after a broken network."""
        controller, loader = self._node.controller, self._node.loader
        await controller.expire_session(self._node.node_id)
        fenced_at = controller.image.provenance.last_offset
        await _until(lambda: loader.last_applied_offset >= fenced_at)

    async def fail_directory(self, path: str | os.PathLike[str] | None = None) -> None:
        """The disk of a log directory answers with errors from now on; of the last one where none
        is named. A node whose only directory failed does not go on."""
        wanted = None if path is None else os.path.abspath(path)
        partitions = self._node.broker.partitions
        found = [each for each in partitions.logs.values() if wanted in (None, each.path)]
        if not found:
            raise KraftlineError(f"{wanted} is no log directory of this node")
        logs = found[-1]
        logs.disk.lost(OSError(errno.EIO, os.strerror(errno.EIO)), "a fault on purpose")
        identity = next(key for key, each in partitions.logs.items() if each is logs)
        if len(partitions.logs) > 1:
            await _until(lambda: not self._is_online(identity))

    def delay_answers(self, api: str, seconds: float, times: int | None = None) -> None:
        """Requests of an API are carried out, and answered late; all, or so many."""
        self._held[_key_of(api)] = _Held(seconds, times)

    def drop_answers(self, api: str, times: int | None = None) -> None:
        """Requests of an API are carried out, but the connection is closed instead of an answer."""
        self._held[_key_of(api)] = _Held(None, times)

    async def clear(self) -> None:
        """No answer is held up any more, and the broker is not fenced. A failed directory stays."""
        self._held.clear()
        await self.unfence_broker()

    def around(self, handle: Handle) -> Handle:
        """What a listener calls."""
        held = self._held

        def handled(frame: memoryview, connection: Connection) -> Answer | Awaitable[Answer]:
            if not held or len(frame) < 2:
                return handle(frame, connection)
            fault = self._next(_key(frame)[0])
            answer = handle(frame, connection)
            return answer if fault is None else _held_up(answer, fault)

        return handled

    def _next(self, key: int) -> _Held | None:
        fault = self._held.get(key)
        if fault is not None and fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                del self._held[key]
        return fault

    @property
    def _is_fenced(self) -> bool:
        registered = self._node.broker.cache.image.cluster.brokers.get(self._node.node_id)
        return registered is None or registered.fenced

    def _is_online(self, directory: object) -> bool:
        brokers = self._node.broker.cache.image.cluster.brokers
        registered = brokers.get(self._node.node_id)
        return registered is not None and directory in registered.directories


async def _held_up(answer: Answer | Awaitable[Answer], fault: _Held) -> Answer:
    made = answer if answer is None or isinstance(answer, list) else await answer
    try:
        if fault.seconds is None:
            raise CloseConnection("its answer is dropped on purpose")
        await asyncio.sleep(fault.seconds)
    except BaseException:
        release_all(made or [])
        raise
    return made


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(_POLL)


def _key_of(name: str) -> int:
    known = {each.name: each.key for each in apis()}
    if name not in known:
        raise KraftlineError(f"{name} is no API of Kafka's{suggestion(name, known)}")
    return known[name]
