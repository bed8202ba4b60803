"""Requests as they are, to any broker: no client between that mends what is sent."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self, TypeVar

from kraftline.schema.api.registry import (
    request_header_version,
    response_class,
    response_header_version,
)
from kraftline.schema.codec import decode, encode
from kraftline.schema.types import Message

M = TypeVar("M", bound=Message)


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Talk:
    """One connection to a broker."""

    def __init__(self, address: tuple[str, int], client_id: str | None = "talk") -> None:
        self.socket = socket.create_connection(address, 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, request: Message, version: int) -> int:
        """Its correlation id."""
        self._correlation_id += 1
        key = request.SPEC.key
        assert key is not None
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
        head += self._correlation_id.to_bytes(4, "big")
        if self._client_id is None:
            head += b"\xff\xff"
        else:
            head += len(self._client_id).to_bytes(2, "big") + self._client_id.encode()
        if request_header_version(key, version) == 2:
            head += b"\0"
        frame = head + encode(request, version)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        return self._correlation_id

    def receive(self, request: Message, version: int) -> Message:
        """The answer to a request that was sent."""
        key = request.SPEC.key
        assert key is not None
        frame = self.frame()
        at = 5 if response_header_version(key, version) == 1 else 4
        return decode(response_class(key), frame[at:], version)

    def frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def ask(self, request: Message, version: int) -> Message:
        self.send(request, version)
        return self.receive(request, version)

    def ask_for(self, kind: type[M], request: Message, version: int) -> M:
        answer = self.ask(request, version)
        assert isinstance(answer, kind)
        return answer

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            data += part
        return bytes(data)
