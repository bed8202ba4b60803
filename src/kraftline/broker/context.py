"""What an API's function is given beside the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kraftline.server.connection import Connection

if TYPE_CHECKING:
    from kraftline.broker.broker import Broker


class Context(msgspec.Struct, frozen=True, gc=False):
    """Who asks, and which version; `broker` is everything that this broker has."""

    broker: Broker
    connection: Connection
    version: int
    client_id: str | None

    @property
    def listener(self) -> str:
        """The listener that the client came through: it is told addresses of the same one."""
        return self.connection.listener.name
