"""What every mechanism of SASL has: messages of a client, each answered, until it is known who it
is, or that it is not who it says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable

from kraftline.broker.authorization.principal import Principal


class NotAuthenticated(Exception):
    """`told` is what the client may know; None where it is told no more than that it failed."""

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class Exchange(ABC):
    """`principal` is known once it is complete; `until_ms` is when what it was proven by ends."""

    principal: Principal | None = None
    until_ms: int | None = None

    @abstractmethod
    def step(self, message: bytes) -> bytes | Awaitable[bytes]:
        """The answer to the next message. NotAuthenticated ends it."""
