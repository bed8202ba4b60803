"""Throttling as it is told: the time that a request took is counted, and the answer says for how
long its client has to be silent."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from functools import cache as remember
from typing import Any, Final, Generic, TypeVar

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.quotas.client_quotas import ClientQuotas
from kraftline.broker.registry import Body, Response
from kraftline.schema.api.fetch import FetchResponse
from kraftline.schema.api.produce import ProduceRequest
from kraftline.schema.api.registry import response_class
from kraftline.schema.fields import fields
from kraftline.schema.types import Message
from kraftline.server.parts import FileRange

_FIELD: Final = "throttle_time_ms"
T = TypeVar("T")


class Timed(Generic[T]):
    """Awaits something, and counts the time that it takes of the event loop, not the time that it
    waits."""

    def __init__(self, awaited: Awaitable[T]) -> None:
        self._awaited = awaited
        self.nanoseconds = 0

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._awaited.__await__()
        sent: Any = None
        problem: BaseException | None = None
        while True:
            start = time.perf_counter_ns()
            try:
                step = steps.send(sent) if problem is None else steps.throw(problem)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                self.nanoseconds += time.perf_counter_ns() - start
            sent = problem = None
            try:
                sent = yield step
            except BaseException as raised:
                problem = raised


def throttled(
    key: int,
    request: Any,
    response: Response,
    context: Context,
    quotas: ClientQuotas,
    *,
    size: int,
    nanoseconds: int,
) -> Response:
    """The answer as it is told; its client's connection is not read for as long as that says.
    `size` is that of the request without its header."""
    if isinstance(response, FetchResponse):
        silent = response.throttle_time_ms  # a fetch has to know before it is answered
    else:
        silent = 0
        if not (isinstance(request, ProduceRequest) and request.acks == 0):
            silent = quotas.took(context, nanoseconds)
        if isinstance(request, ProduceRequest):
            silent = max(silent, quotas.produced(context, size))
        if silent:
            response = _told(key, context.version, response, silent)
    if silent:
        context.connection.mute(silent / 1000)
    return response


def _told(key: int, version: int, response: Response, silent: int) -> Response:
    if isinstance(response, Body):
        first = response.parts[0] if response.parts else b""
        if not _is_first(key, version) or isinstance(first, FileRange):
            return response
        return Body([silent.to_bytes(4, "big") + first[4:], *response.parts[1:]])
    if isinstance(response, Message) and _FIELD in response.__struct_fields__:
        return msgspec.structs.replace(response, **{_FIELD: silent})
    return response


@remember
def _is_first(key: int, version: int) -> bool:
    """Does the answer begin with the time to be silent?"""
    written = [each.name for each in fields(response_class(key)) if version in each.versions]
    return written[:1] == [_FIELD]
