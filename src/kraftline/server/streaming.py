"""Sends an answer through memory, a piece at a time: for connections whose bytes the kernel cannot
send from a file, because they have to be encrypted.

A piece is read when the one before it is on its way, so that an answer of many megabytes takes
little memory; cold pieces are read in a thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from kraftline.server.parts import FileRange, Part
from kraftline.server.sending import release_all

_PIECE: Final = 256 * 1024
_TURN: Final = 4  # pieces that one connection sends before others have their turn


class Streaming:
    """One answer on its way. `when_writable` calls once the client has taken what was written
    before; `done` is called with None, or with what went wrong."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        write: Callable[[bytes], None],
        when_writable: Callable[[Callable[[], None]], bool],
        parts: list[Part],
        done: Callable[[OSError | None], None],
    ) -> None:
        self._loop = loop
        self._write = write
        self._when_writable = when_writable
        self._parts: deque[Part] = deque(parts)
        self._held = parts
        self._done = done
        self._over = False

    def start(self) -> None:
        self._go_on()

    def stop(self, problem: OSError | None) -> None:
        """The end, reached or not."""
        if not self._over:
            self._over = True
            release_all(self._held)
            self._parts.clear()
            self._done(problem)

    def _go_on(self) -> None:
        for _ in range(_TURN):
            if self._over or not self._when_writable(self._go_on):
                return
            if not self._parts:
                self.stop(None)
                return
            piece = self._next()
            if isinstance(piece, FileRange):
                if not piece.is_cached():
                    reading = self._loop.run_in_executor(None, piece.read)
                    reading.add_done_callback(partial(self._was_read, piece))
                    return
                self._send(piece, piece.read())
            else:
                self._write(piece)
        self._loop.call_soon(self._go_on)

    def _next(self) -> Part:
        part = self._parts.popleft()
        if isinstance(part, FileRange) and part.length > _PIECE:
            rest = FileRange(part.descriptor, part.position + _PIECE, part.length - _PIECE)
            self._parts.appendleft(rest)
            return FileRange(part.descriptor, part.position, _PIECE)
        return part

    def _was_read(self, piece: FileRange, read: asyncio.Future[bytes]) -> None:
        if self._over:
            return
        try:
            self._send(piece, read.result())
        except OSError as problem:
            self.stop(problem)
        self._go_on()

    def _send(self, piece: FileRange, data: bytes) -> None:
        if len(data) == piece.length:
            self._write(data)
        else:
            self.stop(OSError("a file that was being sent has been cut"))
