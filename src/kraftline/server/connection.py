"""One client's connection: requests in frames, answered one after the other in their order.

While an answer is being made or sent, no further request of this connection is looked at, and once
its buffer is full the socket is not read: a client that sends without end, or never reads its
answers, waits for itself alone.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from kraftline.server.parts import Answer, FileRange, Part, length_of
from kraftline.server.sending import Sending, release_all
from kraftline.server.streaming import Streaming

if TYPE_CHECKING:
    from kraftline.server.server import Listener

log = logging.getLogger(__name__)

_FIRST: Final = 4 * 1024
_KEEP: Final = 2 * 1024 * 1024  # a buffer that grew beyond this is given back
_AHEAD: Final = 64 * 1024  # is read ahead while a request is being answered
# Ranges up to this are quicker read than sent by the kernel: 70 µs of processor time instead of 130
# for 40 KB, as much at 150 KB.
_IN_MEMORY: Final = 64 * 1024

# A frame is a view into the buffer that the next one is received into: whatever is wanted of it
# later, while an answer is awaited, has to be copied.
Handle: TypeAlias = "Callable[[memoryview, Connection], Answer | Awaitable[Answer]]"


class CloseConnection(Exception):
    """What came is not to be answered, or `last` is the last answer; the reason goes to the log."""

    def __init__(self, reason: str, last: list[Part] | None = None) -> None:
        super().__init__(reason)
        self.last = last


class Connection(asyncio.BufferedProtocol):
    """`handle` gets each frame, of at most `most` bytes; what it raises closes the connection."""

    def __init__(self, listener: Listener, handle: Handle, most: int) -> None:
        self.listener = listener
        self.peer = ""
        self.last_active = time.monotonic()
        self.state: dict[str, object] = {}  # what handlers keep of this client
        self._handle = handle
        self.most = most
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(_FIRST)
        self._start = self._end = 0
        self._busy = False
        self._paused = False  # is the socket not being read?
        self._stalled = False  # does the client not read its answers?
        self._muted = 0  # times that it was told to be silent, and is not through with it
        self._closed = False
        self._transport: asyncio.Transport | None = None
        self._sending: Sending | Streaming | None = None
        self._task: asyncio.Future[Answer] | None = None
        self._after_drain: Callable[[], None] | None = None

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The client's, over TLS, if it was asked for and has one that is trusted."""
        if self._transport is None:
            return None
        found: Mapping[str, Any] | None = self._transport.get_extra_info("peercert")
        return found

    # The loop's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)
        channel = transport.get_extra_info("socket")
        if channel is not None and channel.family in (socket.AF_INET, socket.AF_INET6):
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Any answer that is not wholly sent pauses this connection: one at a time, as in Kafka.
        # Over TLS a connection pauses at its limit, otherwise above it.
        is_encrypted = transport.get_extra_info("ssl_object") is not None
        self._transport.set_write_buffer_limits(high=1 if is_encrypted else 0, low=0)
        self.listener.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        if self._sending is not None:
            self._sending.stop(OSError("the client is gone"))
        if self._task is not None:
            self._task.cancel()
        self.listener.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._end == len(self._buffer):
            self._make_room()
        return memoryview(self._buffer)[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.last_active = time.monotonic()
        self._pump()

    def pause_writing(self) -> None:
        self._stalled = True

    def resume_writing(self) -> None:
        self._stalled = False
        if self._after_drain is not None:
            go_on, self._after_drain = self._after_drain, None
            go_on()
        else:
            self._pump()

    # Frames.

    def _pump(self) -> None:
        while not (self._busy or self._stalled or self._muted or self._closed):
            frame = self._next_frame()
            if frame is None:
                break
            self._process(frame)
        self._pause_or_go_on()

    def _next_frame(self) -> memoryview | None:
        have = self._end - self._start
        if have < 4:
            return None
        size = int.from_bytes(self._buffer[self._start : self._start + 4], "big", signed=True)
        if not 0 <= size <= self.most:
            self.close(f"a request of {size:,} bytes; {self.most:,} are allowed")
            return None
        if have < 4 + size:
            return None
        frame = memoryview(self._buffer)[self._start + 4 : self._start + 4 + size]
        self._start += 4 + size
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > _KEEP:
                self._buffer = bytearray(_AHEAD)
        return frame

    def rest(self) -> None:
        """Nothing has come for a while: a buffer that grew is given back."""
        if self._start == self._end and len(self._buffer) > _FIRST:
            self._buffer = bytearray(_FIRST)
            self._start = self._end = 0

    def _make_room(self) -> None:
        """Room behind what has come: by moving it to the front, or by a larger buffer, which goes
        no further than twice what has come, whatever length a frame claims."""
        have = self._end - self._start
        if self._start:
            self._buffer[:have] = self._buffer[self._start : self._end]
            self._start, self._end = 0, have
        if have * 2 > len(self._buffer):
            self._buffer = self._buffer + bytearray(len(self._buffer))

    def _pause_or_go_on(self) -> None:
        if self._transport is None or self._closed:
            return
        full = (self._busy or self._stalled or self._muted) and self._end - self._start >= _AHEAD
        if full and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        elif self._paused and not full:
            self._paused = False
            self._transport.resume_reading()

    # Answers.

    def _process(self, frame: memoryview) -> None:
        try:
            answer = self._handle(frame, self)
        except CloseConnection as reason:
            self._end_with(reason)
        except Exception:
            log.exception("a request of %s failed", self.peer)
            self.close("a request failed")
        else:
            if answer is None or isinstance(answer, list):
                self._answer(answer)
            else:
                self._busy = True
                self._task = asyncio.ensure_future(answer)
                self._task.add_done_callback(self._made)

    def _made(self, task: asyncio.Future[Answer]) -> None:
        self._task = None
        if task.cancelled() or self._closed:
            if not task.cancelled() and task.exception() is None:
                release_all(task.result() or [])
            return
        self._busy = False
        problem = task.exception()
        if isinstance(problem, CloseConnection):
            self._end_with(problem)
        elif problem is not None:
            log.error("a request of %s failed", self.peer, exc_info=problem)
            self.close("a request failed")
        else:
            self._answer(task.result())
        self._pump()

    def _end_with(self, reason: CloseConnection) -> None:
        self._answer(reason.last)
        self.close(str(reason))

    def _answer(self, answer: Answer) -> None:
        assert self._transport is not None
        if answer is None or self._closed:
            return
        self.last_active = time.monotonic()
        size = length_of(answer)
        head = size.to_bytes(4, "big")
        if not any(isinstance(each, FileRange) for each in answer):
            self._transport.write(b"".join((head, *cast("list[bytes]", answer))))
            return
        self._busy = True
        if size <= _IN_MEMORY and all(
            each.is_cached() for each in answer if isinstance(each, FileRange)
        ):
            self._send_read(head, answer)
        elif self._transport.get_extra_info("ssl_object") is not None:
            write = self._transport.write
            parts = [head, *answer]
            self._sending = Streaming(self._loop, write, self._when_writable, parts, self._sent)
            self._sending.start()
        elif self._stalled:
            self._after_drain = lambda: self._send_direct(head, answer)
        else:
            self._send_direct(head, answer)

    def _send_direct(self, head: bytes, answer: list[Part]) -> None:
        assert self._transport is not None
        if self._closed:
            release_all(answer)
            return
        channel = self._transport.get_extra_info("socket")
        self._sending = Sending(self._loop, channel, [head, *answer], self._sent)
        self._sending.start()

    def _sent(self, problem: OSError | None) -> None:
        self._sending = None
        self._busy = False
        self.last_active = time.monotonic()
        if problem is not None:
            self.close(str(problem))
        else:
            self._loop.call_soon(self._pump)

    def _when_writable(self, go_on: Callable[[], None]) -> bool:
        """Whether the client has taken everything; if not, `go_on` is called when it has."""
        if self._stalled:
            self._after_drain = go_on
        return not self._stalled

    def _send_read(self, head: bytes, answer: list[Part]) -> None:
        """Through memory: small ranges are quicker read than sent by the kernel."""
        assert self._transport is not None
        parts = [head]
        for each in answer:
            if isinstance(each, FileRange):
                data = each.read()
                if len(data) != each.length:
                    release_all(answer)
                    self.close("a file that was being sent has been cut")
                    return
                parts.append(data)
            else:
                parts.append(each)
        release_all(answer)
        self._transport.write(b"".join(parts))
        self._busy = False

    def mute(self, seconds: float) -> None:
        """Look at no request for a while; answers go out."""
        self._muted += 1
        self._loop.call_later(seconds, self._unmute)

    def _unmute(self) -> None:
        self._muted -= 1
        if not self._muted:
            self._pump()

    def close(self, reason: str | None = None) -> None:
        """With a line in the log where there is a reason."""
        if self._closed:
            return
        self._closed = True
        if reason is not None:
            log.info("closed the connection of %s: %s", self.peer, reason)
        if self._transport is not None:
            self._transport.close()
