"""From a frame to an answer: header, registry, decoding, the API's function, encoding.

A request that Kafka would not answer closes the connection, with the reason in the log.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, cast

from kraftline.broker.context import Context
from kraftline.broker.registry import Body, Handler, Response, answered, handler
from kraftline.errors import BadData
from kraftline.schema.api.registry import (
    api,
    request_class,
    request_header_version,
    response_header_version,
)
from kraftline.schema.codec import reader, writer
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer
from kraftline.server.connection import CloseConnection, Connection
from kraftline.server.parts import Answer, Part

if TYPE_CHECKING:
    from kraftline.broker.broker import Broker

API_VERSIONS: Final = 18
_HEAD: Final = struct.Struct(">hhi")
_correlation = struct.Struct(">i").pack


class Requests:
    """Answers frames for one broker: `handle` is what its listeners call."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes: dict[tuple[int, int], _Route] = {}

    def handle(self, frame: bytes, connection: Connection) -> Answer | Awaitable[Answer]:
        if len(frame) < _HEAD.size:
            raise CloseConnection(f"{len(frame)} bytes are not a request")
        key, version, correlation_id = _HEAD.unpack_from(frame)
        route = self._routes.get((key, version))
        if route is None:
            route = self._route(key, version)
        source = Reader(frame, _HEAD.size)
        try:
            client_id = source.nullable_string()
            if route.flexible_header:
                _skip_tags(source)
            request = route.read(source)
        except BadData as problem:
            raise CloseConnection(f"{route.name} version {version}: {problem}") from problem
        context = Context(self._broker, connection, route.version, client_id)
        response = route.answer(request, context)
        if response is None or isinstance(response, (Message, Body)):
            return route.encode(correlation_id, response)
        return _later(route, correlation_id, response)

    def _route(self, key: int, version: int) -> _Route:
        versions = answered(key)
        if versions is None or (version not in versions and key != API_VERSIONS):
            name = api(key).name if versions is not None else f"API {key}"
            raise CloseConnection(f"{name} version {version} is not answered")
        assert versions is not None
        route = _Route(key, version, version in versions)
        self._routes[key, version] = route
        return route


class _Route:
    """One version of one API."""

    def __init__(self, key: int, version: int, known: bool) -> None:
        self.key = key
        self.version = version
        self.name = api(key).name
        self.answer: Handler = handler(key)
        if known:
            self.flexible_header = request_header_version(key, version) == 2
            self.flexible_answer = response_header_version(key, version) == 1
            self.read = reader(request_class(key), version)
            self.written = version
        else:
            # Only ApiVersions comes here: it is answered in version 0, which all understand.
            self.flexible_header = self.flexible_answer = False
            self.read = lambda source: request_class(key)()
            self.written = 0

    def encode(self, correlation_id: int, response: Response) -> Answer:
        if response is None:
            return None
        head = _correlation(correlation_id)
        if self.flexible_answer:
            head += b"\0"
        if isinstance(response, Body):
            return [head, *response.parts]
        out = Writer()
        writer(type(response), self.written)(out, response)
        return [head, *cast("list[Part]", out.parts())]


async def _later(route: _Route, correlation_id: int, response: Awaitable[Response]) -> Answer:
    return route.encode(correlation_id, await response)


def _skip_tags(source: Reader) -> None:
    for _ in range(source.uvarint()):
        source.uvarint()
        source.raw(source.uvarint())
