"""From a frame to an answer: header, registry, decoding, the API's function, encoding.

A request that Kafka would not answer closes the connection, with the reason in the log. Bytes that
are left over behind a request are ignored, as Kafka does. What an API's function raises becomes the
error response of its API; where that has no place for an error the connection is closed.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.quotas import ClientQuotas
from kraftline.broker.quotas.throttling import Timed, throttled
from kraftline.broker.registry import MODULES, Body, Response, answered, failure, handler
from kraftline.controller.refusal import Refusal
from kraftline.errors import BadData
from kraftline.schema.api.error_codes import ErrorCode
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

PRODUCE: Final = 0
API_VERSIONS: Final = 18
# Key, version, correlation id, and how long the client's id is (-1: it has none).
_HEAD: Final = struct.Struct(">hhih")
_correlation = struct.Struct(">i").pack

_logger = logging.getLogger(__name__)


class Requests:
    """Answers frames for one broker: `handle` is what its listeners call. `modules` are those of
    the APIs that are answered; `quotas` count for their clients."""

    def __init__(
        self,
        broker: Broker,
        modules: Mapping[int, str] = MODULES,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self._broker = broker
        self._quotas = quotas
        self._modules = modules
        self._routes: dict[tuple[int, int], _Route] = {}

    def handle(
        self, frame: memoryview | bytes, connection: Connection
    ) -> Answer | Awaitable[Answer]:
        asked = self.understand(frame, connection)
        if self._quotas is not None and self._quotas.is_enabled:
            return self._handle_counted(asked, self._quotas)
        route, request, context = asked.route, asked.message, asked.context
        try:
            response = route.answer(request, context)
        except Exception as problem:
            response = route.fail(request, context, problem)
        if response is None or isinstance(response, (Message, Body)):
            return route.encode(asked.correlation_id, response)
        return _later(asked, response)

    def _handle_counted(self, asked: Asked, quotas: ClientQuotas) -> Answer | Awaitable[Answer]:
        """Likewise, where what clients use is counted."""
        start = time.perf_counter_ns()
        try:
            response = asked.route.answer(asked.message, asked.context)
        except Exception as problem:
            response = asked.route.fail(asked.message, asked.context, problem)
        spent = time.perf_counter_ns() - start
        if response is None or isinstance(response, (Message, Body)):
            return asked.encode(_throttled(asked, response, quotas, spent))
        return _later_counted(asked, response, quotas, spent)

    def understand(self, frame: memoryview | bytes, connection: Connection) -> Asked:
        """What a frame asks, before anything is done about it."""
        if len(frame) < _HEAD.size:
            raise CloseConnection(f"{len(frame)} bytes are not a request")
        key, version, correlation_id, length = _HEAD.unpack_from(frame)
        route = self._routes.get((key, version))
        if route is None:
            route = self._route(key, version)
        after = _HEAD.size + max(length, 0)
        if after > len(frame):
            raise CloseConnection(f"{route}: a client id of {length} bytes")
        # Whatever bytes a client calls itself by: they are its own affair.
        client_id = None if length < 0 else str(frame[_HEAD.size : after], "utf-8", "replace")
        # Records are written to disk from where they were received; all else is small, and may be
        # wanted longer than the buffer is.
        source = Reader(frame if key == PRODUCE else bytes(frame), after)
        try:
            if route.flexible_header:
                _skip_tags(source)
            size = len(frame) - source.pos
            request = route.read(source)
        except BadData as problem:
            raise CloseConnection(f"{route}: {problem}") from problem
        context = Context(self._broker, connection, version, client_id)
        return Asked(route, correlation_id, request, context, size)

    def _route(self, key: int, version: int) -> _Route:
        versions = answered(key, self._modules)
        if versions is None:
            raise CloseConnection(f"API {key} is not answered")
        if version not in versions and key != API_VERSIONS:
            raise CloseConnection(f"{api(key).name} version {version} is not answered")
        route = _Route(key, version, version in versions, self._modules)
        if version in versions:
            self._routes[key, version] = route
        return route


class _Route:
    """One version of one API."""

    def __init__(self, key: int, version: int, known: bool, modules: Mapping[int, str]) -> None:
        self.key = key
        self.version = version
        self.modules = modules
        self.answer = handler(key, modules)
        if known:
            self.flexible_header = request_header_version(key, version) == 2
            self.flexible_answer = response_header_version(key, version) == 1
            self.read = reader(request_class(key), version)
            self.written = version
        else:
            # Only ApiVersions comes here: what is behind the header is not looked at, and it is
            # answered in version 0, which all understand.
            self.flexible_header = version >= api(key).flexible.first
            self.flexible_answer = False
            self.read = lambda source: request_class(key)()
            self.written = 0

    def __str__(self) -> str:
        return f"{api(self.key).name} version {self.version}"

    def fail(self, request: Any, context: Context, problem: Exception) -> Response:
        """What the client is told instead of an answer."""
        if isinstance(problem, CloseConnection):
            raise problem
        if isinstance(problem, Refusal):
            code = problem.code
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            _logger.error("%s of %s failed", self, context.connection.peer, exc_info=problem)
        response = failure(self.key, request, code, context, self.modules)
        if response is None:
            raise CloseConnection(f"{self} failed, and its answer has no place for an error")
        return response

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


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request with all that answering it takes; `size` is that of its body."""

    route: _Route
    correlation_id: int
    message: Any
    context: Context
    size: int

    def __str__(self) -> str:
        return str(self.route)

    def encode(self, response: Response) -> Answer:
        return self.route.encode(self.correlation_id, response)

    def refused(self, code: ErrorCode) -> Answer:
        """The answer that tells nothing but an error; None where the API has none such."""
        route = self.route
        return self.encode(failure(route.key, self.message, code, self.context, route.modules))


async def _later(asked: Asked, response: Awaitable[Response]) -> Answer:
    try:
        made = await response
    except Exception as problem:
        made = asked.route.fail(asked.message, asked.context, problem)
    return asked.encode(made)


async def _later_counted(
    asked: Asked, response: Awaitable[Response], quotas: ClientQuotas, spent: int
) -> Answer:
    timed = Timed(response)
    try:
        made = await timed
    except Exception as problem:
        made = asked.route.fail(asked.message, asked.context, problem)
    return asked.encode(_throttled(asked, made, quotas, spent + timed.nanoseconds))


def _throttled(asked: Asked, response: Response, quotas: ClientQuotas, spent: int) -> Response:
    return throttled(
        asked.route.key,
        asked.message,
        response,
        asked.context,
        quotas,
        size=asked.size,
        nanoseconds=spent,
    )


def _skip_tags(source: Reader) -> None:
    for _ in range(source.uvarint()):
        source.uvarint()
        source.raw(source.uvarint())
