"""A node in a thread of its own, for programs that do not await: `with Node() as node:`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import uvloop

from kraftline.errors import KraftlineError

if TYPE_CHECKING:
    from kraftline.node.node import Node

_logger = logging.getLogger(__name__)

T = TypeVar("T")


class NodeThread:
    """The face of a node for other threads. `node` itself belongs to its own event loop: `run`
    does something there. `failure` is what ended it before it was told to stop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.failure: KraftlineError | OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._started = threading.Event()
        self._is_told = False  # to stop
        self._problem: BaseException | None = None
        # One that is never stopped must not keep the program from ending.
        self._thread = threading.Thread(target=self._work, name="kraftline-node", daemon=True)

    @property
    def bootstrap(self) -> str:
        """Where clients connect: host and port."""
        return self.node.bootstrap

    @property
    def cluster_id(self) -> str:
        return self.node.cluster_id

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        """Return once it can be used; TopicRefused says why there is none."""
        self.run(lambda: self.node.create_topic(name, partitions, configs))

    @property
    def faults(self) -> ThreadFaults:
        """Faults on purpose."""
        return ThreadFaults(self)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in the node's event loop, and wait for it."""
        if self._loop is None or not self._thread.is_alive():
            raise KraftlineError("the node does not run any more")

        async def call() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def start(self) -> None:
        """Return once clients are served; what kept the node from it is raised."""
        self._thread.start()
        try:
            self._started.wait()
        except BaseException:  # Ctrl-C: nobody would stop it later
            self.stop()
            raise
        if self._problem is not None:
            self._thread.join()
            raise self._problem

    def stop(self) -> None:
        """Return once everything is flushed and given back."""
        self._is_told = True
        if self._loop is not None and self._end is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if self._problem is not None:
            raise self._problem

    def _work(self) -> None:
        try:
            uvloop.run(self._main())
        except BaseException as problem:
            self._problem = problem
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        if self._is_told:
            return
        await self.node.start()
        self._started.set()
        try:
            await self._until_told()
        finally:
            await self.node.stop()

    async def _until_told(self) -> None:
        """What fails meanwhile is said; whoever asks the node notices."""
        assert self._end is not None
        told = asyncio.create_task(self._end.wait())
        failing = asyncio.create_task(self.node.failed())
        await asyncio.wait((told, failing), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            problem = failing.exception()
            assert isinstance(problem, (KraftlineError, OSError))
            self.failure = problem
            _logger.error("the node stops: %s", problem)
        for each in (told, failing):
            each.cancel()
        await asyncio.wait((told, failing))


class ThreadFaults:
    """`kraftline.node.faults.Faults` for another thread than the node's."""

    def __init__(self, thread: NodeThread) -> None:
        self._run = thread.run
        self._faults = thread.node.faults

    def fence_broker(self) -> None:
        self._run(self._faults.fence_broker)

    def unfence_broker(self) -> None:
        self._run(self._faults.unfence_broker)

    def expire_session(self) -> None:
        self._run(self._faults.expire_session)

    def fail_directory(self, path: str | os.PathLike[str] | None = None) -> None:
        self._run(lambda: self._faults.fail_directory(path))

    def delay_answers(self, api: str, seconds: float, times: int | None = None) -> None:
        self._faults.delay_answers(api, seconds, times)

    def drop_answers(self, api: str, times: int | None = None) -> None:
        self._faults.drop_answers(api, times)

    def clear(self) -> None:
        self._run(self._faults.clear)
