"""Listeners: addresses that take connections, with limits."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from kraftline.server.connection import Connection, Handle

log = logging.getLogger(__name__)
_BACKLOG = 512


class Limits(Struct, frozen=True, kw_only=True):
    """Kafka's names: socket.request.max.bytes, connections.max.idle.ms, max.connections,
    max.connections.per.ip and max.connections.per.ip.overrides."""

    request_bytes: int = 104_857_600
    idle_seconds: float = 600.0
    connections: int = 2**31 - 1
    connections_of_address: int = 2**31 - 1
    by_address: Mapping[str, int] = {}


class Listener:
    """One address. `name` is what Kafka calls it (PLAINTEXT, CONTROLLER, ...); `channel` is a
    socket that is bound to it already."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        handle: Handle,
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        channel: socket.socket | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.limits = limits or Limits()
        self._handle = handle
        self._tls = tls
        self._channel = channel
        self._connections: set[Connection] = set()
        self._addresses: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def start(self) -> None:
        """Take connections; afterwards `port` is the real one, also where it was 0."""
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(self, self._handle, self.limits.request_bytes)

        if self._channel is None:
            self._server = await loop.create_server(
                connection, self.host or None, self.port, ssl=self._tls, backlog=_BACKLOG
            )
        else:
            self._server = await loop.create_server(
                connection, sock=self._channel, ssl=self._tls, backlog=_BACKLOG
            )
        self.port = self._server.sockets[0].getsockname()[1]
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)

    def opened(self, connection: Connection) -> None:
        """A connection says that it is there; it is sent away if there are too many."""
        address = connection.peer.rpartition(":")[0]
        self._connections.add(connection)
        self._addresses[address] += 1
        if len(self._connections) > self.limits.connections:
            connection.close(f"{self.limits.connections:,} connections are allowed")
            return
        most = self.limits.by_address.get(address, self.limits.connections_of_address)
        if self._addresses[address] > most:
            connection.close(f"{most:,} connections of one address are allowed")

    def closed(self, connection: Connection) -> None:
        address = connection.peer.rpartition(":")[0]
        self._connections.discard(connection)
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    async def _sweep(self) -> None:
        """Close what nobody has used for long, and take memory back from what rests."""
        pause = min(self.limits.idle_seconds / 4, 30)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            for connection in list(self._connections):
                if connection.last_active < now - self.limits.idle_seconds:
                    connection.close("idle for too long")
                elif connection.last_active < now - pause:
                    connection.rest()
