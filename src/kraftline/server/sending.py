"""Sends bytes and file ranges on a socket, as much as it takes at a time.

The event loop's own transport must have nothing left to send: its descriptor is duplicated and
written to directly. A range of a file that was cut meanwhile can not be made whole: the connection
is closed, since the client was promised more.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable

from kraftline.server.parts import FileRange, Part

_TURN = 1 << 20  # bytes that one connection sends before others have their turn


class Sending:
    """One answer on its way. `done` is called with None, or with what went wrong."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: socket.socket,
        parts: list[Part],
        done: Callable[[OSError | None], None],
    ) -> None:
        self._loop = loop
        self._descriptor = os.dup(channel.fileno())
        self._parts: deque[memoryview | FileRange] = deque(
            each if isinstance(each, FileRange) else memoryview(each) for each in parts if each
        )
        self._done = done
        self._at = 0  # within the first part
        self._waiting = False
        self._over = False

    def start(self) -> None:
        first = next((each for each in self._parts if isinstance(each, FileRange)), None)
        if first is None or first.is_cached():
            self._go_on()
        else:
            warming = self._loop.run_in_executor(None, self._warm)
            warming.add_done_callback(lambda _: self._go_on())

    def _warm(self) -> None:
        for each in list(self._parts):
            if isinstance(each, FileRange):
                each.warm()

    def _go_on(self) -> None:
        if self._over:
            return
        turn = _TURN
        try:
            while self._parts and turn > 0:
                sent = self._send_some(turn)
                turn -= sent
        except (BlockingIOError, InterruptedError):
            if not self._waiting:
                self._waiting = True
                self._loop.add_writer(self._descriptor, self._go_on)
            return
        except OSError as problem:
            self.stop(problem)
            return
        if not self._parts:
            self.stop(None)
        elif not self._waiting:
            self._loop.call_soon(self._go_on)

    def _send_some(self, most: int) -> int:
        part = self._parts[0]
        if isinstance(part, FileRange):
            left = part.length - self._at
            sent = os.sendfile(
                self._descriptor, part.descriptor, part.position + self._at, min(left, most)
            )
            if sent == 0:
                raise OSError("a file that was being sent has been cut")
        else:
            left = len(part) - self._at
            sent = os.write(self._descriptor, part[self._at : self._at + most])
        self._at += sent
        if sent == left:
            self._parts.popleft()
            self._at = 0
            if isinstance(part, FileRange) and part.release is not None:
                part.release()
        return sent

    def stop(self, problem: OSError | None) -> None:
        """The end, reached or not."""
        if self._over:
            return
        self._over = True
        if self._waiting:
            self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        release_all(self._parts)
        self._parts.clear()
        self._done(problem)


def release_all(parts: deque[memoryview | FileRange] | list[Part]) -> None:
    for each in parts:
        if isinstance(each, FileRange) and each.release is not None:
            each.release()
