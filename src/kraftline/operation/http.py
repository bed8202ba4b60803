"""The pages of a node for those who run it: `/metrics`, `/healthz`, `/readyz`.

As much of HTTP/1.1 as that takes: one GET or HEAD to a connection. A client that sends more than a
request's head, or takes too long, is sent away.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import msgspec

from kraftline.operation.exposition import CONTENT_TYPE, lines
from kraftline.operation.health import healthy, ready
from kraftline.operation.metrics import families
from kraftline.operation.sources import Sources

_MOST_BYTES: Final = 16 * 1024
_SECONDS: Final = 10
_AT_ONCE: Final = 100  # lines, before others get their turn
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}
_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"


class _Page(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    type: str = _TEXT


class OperationListener:
    """`channel` is bound already. Before `serve` is told what there is to say, the node is alive
    but not ready."""

    def __init__(self, channel: socket.socket) -> None:
        self.port = int(channel.getsockname()[1])
        self._channel = channel
        self._sources: Sources | None = None
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        self._server = await asyncio.start_server(
            self._connected, sock=self._channel, limit=_MOST_BYTES
        )

    def serve(self, sources: Sources) -> None:
        self._sources = sources

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        # Not cancelled: asyncio would tell of that as of a fault.
        for writer in self._clients.values():
            writer.transport.abort()
        if self._clients:
            await asyncio.wait(list(self._clients))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        try:
            async with asyncio.timeout(_SECONDS):
                await self._answer(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # it gets nothing
        finally:
            del self._clients[task]
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if b"HTTP/1." not in head.partition(b"\r\n")[0]:
            page = _Page(400, b"this is no HTTP/1.1\n")
        elif method not in (b"GET", b"HEAD"):
            page = _Page(405, b"GET and HEAD are answered\n")
        else:
            page = await self._page(path)
        top = (
            f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
            f"Content-Type: {page.type}\r\nContent-Length: {len(page.body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        writer.write(top.encode() + (b"" if method == b"HEAD" else page.body))
        await writer.drain()

    async def _page(self, path: str) -> _Page:
        if path not in ("/metrics", "/healthz", "/readyz"):
            return _Page(404, b"/metrics, /healthz and /readyz are here\n")
        sources = self._sources
        if path == "/metrics":
            if sources is None:
                return _Page(503, b"the node is starting\n")
            return _Page(200, await _text(lines(families(sources))), CONTENT_TYPE)
        health = healthy(sources) if path == "/healthz" else ready(sources)
        return _Page(200 if health.is_well else 503, msgspec.json.encode(health), _JSON)


async def _text(told: Iterator[str]) -> bytes:
    """Many partitions have many lines: others are served in between."""
    parts: list[str] = []
    for count, line in enumerate(told, 1):
        parts.append(line)
        if count % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return ("\n".join(parts) + "\n").encode()
