"""The door of a SASL listener: until a client has said who it is, it may say nothing else.

- ApiVersions at most once, then SaslHandshake with the mechanism, then SaslAuthenticate (after
  version 0 of the handshake bare tokens) until the mechanism is through.
- What fails is answered `connection.failed.authentication.delay.ms` later, and the connection is
  closed: nobody tries many passwords quickly, and no answer tells more than that it failed.
- Where sessions end (`connections.max.reauth.ms`, or that of a delegation token) the client has to
  say again who it is, by the same mechanism, at most once a second: it must be the same one.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, cast

from kraftline.broker.authorization.principal import Principal
from kraftline.broker.context import PRINCIPAL
from kraftline.broker.requests import Requests
from kraftline.broker.sasl.exchange import Exchange, NotAuthenticated
from kraftline.config.sasl import SaslSettings
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraftline.schema.api.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraftline.server.connection import CloseConnection, Connection
from kraftline.server.parts import Answer

_logger = logging.getLogger(__name__)

_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18
_AUTHENTICATE: Final = 36
_STATE: Final = "sasl"
_SHORTEST_SESSION_S: Final = 1.0  # between one handshake of a session and the next
_key = struct.Struct(">h").unpack_from
_head = struct.Struct(">hh").unpack_from

# A new exchange of a mechanism.
Begin = Callable[[], Exchange]


class Authentication:
    """`handle` is what a SASL listener calls; `clock` gives the time in ms, as tokens have it."""

    def __init__(
        self,
        requests: Requests,
        settings: SaslSettings,
        mechanisms: Mapping[str, Begin],
        *,
        most_bytes: int,
        clock: Callable[[], int],
    ) -> None:
        self.requests = requests
        self.settings = settings
        self.mechanisms = mechanisms
        self.most_bytes = most_bytes
        self.clock = clock

    def handle(self, frame: memoryview, connection: Connection) -> Answer | Awaitable[Answer]:
        state = cast("_State | None", connection.state.get(_STATE))
        if state is None:
            state = connection.state[_STATE] = _State(self, connection)
        if not state.is_open:
            return state.take(bytes(frame))
        if state.ends_at is not None:
            now = time.monotonic()
            if len(frame) > 2 and _key(frame)[0] == _HANDSHAKE and state.begin_again(now):
                return state.take(bytes(frame))
            if now > state.ends_at:
                raise CloseConnection("its session has ended")
        return self.requests.handle(frame, connection)


class _State:
    """How far one connection is."""

    def __init__(self, door: Authentication, connection: Connection) -> None:
        self.is_open = False
        self.ends_at: float | None = None  # of the clock that never jumps
        self._door = door
        self._connection = connection
        self._knows_versions = False
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._is_bare = False  # are tokens sent without a request around them?
        self._before: tuple[str, Principal] | None = None  # what a session was before
        self._wrong_mechanism: str | None = None
        self._began_at: float | None = None

    def begin_again(self, now: float) -> bool:
        if self._began_at is not None and now - self._began_at < _SHORTEST_SESSION_S:
            return False
        self._began_at = now
        self._before = (self._mechanism, cast(Principal, self._connection.state[PRINCIPAL]))
        self.is_open = False
        self._exchange = None
        self._knows_versions = True
        return True

    def take(self, frame: bytes) -> Answer | Awaitable[Answer]:
        """The answer to a request or a token before the client is known."""
        if self._wrong_mechanism is not None:
            return self._refuse(self._wrong_mechanism)
        if self._exchange is not None:
            if self._is_bare:
                return self._step(self._exchange, frame, None)
            return self._authenticate(self._exchange, frame)
        if len(frame) < 4:
            return self._refuse("its first bytes are not a request")
        key, version = _head(frame)
        if key == _API_VERSIONS and not self._knows_versions:
            answer = self._door.requests.handle(frame, self._connection)
            assert isinstance(answer, list)
            # One that was refused may be asked again.
            told = b"".join(cast("list[bytes]", answer))
            self._knows_versions = told[4:6] == b"\0\0"
            return answer
        if key == _API_VERSIONS:
            raise CloseConnection("ApiVersions twice before SASL")
        if key != _HANDSHAKE:
            return self._refuse(f"Unexpected Kafka request of type {key} during SASL handshake.")
        return self._handshake(frame, version)

    def _handshake(self, frame: bytes, version: int) -> Answer | Awaitable[Answer]:
        asked = self._door.requests.understand(frame, self._connection)
        request = cast(SaslHandshakeRequest, asked.message)
        begin = self._door.mechanisms.get(request.mechanism)
        mechanisms = self._door.settings.mechanisms
        if begin is None:
            refused = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms
            )
            return self._refuse(
                f"Unsupported SASL mechanism {request.mechanism}", asked.encode(refused)
            )
        if self._before is not None and request.mechanism != self._before[0]:
            self._wrong_mechanism = (
                f"SASL mechanism '{request.mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._before[0]}'"
            )
        else:
            self._exchange = begin()
        self._mechanism = request.mechanism
        self._is_bare = version == 0
        return asked.encode(SaslHandshakeResponse(mechanisms=mechanisms))

    def _authenticate(self, exchange: Exchange, frame: bytes) -> Answer | Awaitable[Answer]:
        asked = self._door.requests.understand(frame, self._connection)
        if not isinstance(asked.message, SaslAuthenticateRequest):
            return self._refuse(
                f"Unexpected Kafka request {asked} during SASL authentication.",
                asked.refused(ErrorCode.ILLEGAL_SASL_STATE),
            )

        def encode(response: SaslAuthenticateResponse) -> Answer:
            return asked.encode(response)

        return self._step(exchange, asked.message.auth_bytes, encode)

    def _step(
        self,
        exchange: Exchange,
        token: bytes,
        encode: Callable[[SaslAuthenticateResponse], Answer] | None,
    ) -> Answer | Awaitable[Answer]:
        try:
            answered = exchange.step(token)
            if isinstance(answered, bytes):
                return self._told(exchange, answered, encode)
        except NotAuthenticated as problem:
            return self._failed(problem, encode)
        return self._step_later(exchange, answered, encode)

    async def _step_later(
        self,
        exchange: Exchange,
        answering: Awaitable[bytes],
        encode: Callable[[SaslAuthenticateResponse], Answer] | None,
    ) -> Answer:
        try:
            return self._told(exchange, await answering, encode)
        except NotAuthenticated as problem:
            return await self._failed(problem, encode)

    def _told(
        self,
        exchange: Exchange,
        token: bytes,
        encode: Callable[[SaslAuthenticateResponse], Answer] | None,
    ) -> Answer:
        lifetime_ms = 0 if exchange.principal is None else self._open(exchange, exchange.principal)
        if encode is None:
            return [token]
        return encode(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))

    def _open(self, exchange: Exchange, principal: Principal) -> int:
        """It is known who the client is; how long that counts, in ms."""
        if self._before is not None and str(self._before[1]) != str(principal):
            before = self._before[1]
            told = (
                "Cannot change principals during re-authentication from "
                f"{before.type}.{before.name}: {principal.type}.{principal.name}"
            )
            raise NotAuthenticated(told, told)
        self._connection.state[PRINCIPAL] = principal
        self._connection.most = self._door.most_bytes
        self._exchange = None
        self.is_open = True
        longest = self._door.settings.session_ms[self._mechanism]
        if exchange.until_ms is not None:
            left = max(0, exchange.until_ms - self._door.clock())
            longest = min(left, longest) if longest else left
        elif not longest:
            self.ends_at = None
            return 0
        self.ends_at = time.monotonic() + longest / 1000
        return longest

    def _failed(
        self,
        problem: NotAuthenticated,
        encode: Callable[[SaslAuthenticateResponse], Answer] | None,
    ) -> Awaitable[Answer]:
        what = "re-authentication" if self._before is not None else "authentication"
        told = problem.told or (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )
        answer = None
        if encode is not None:
            answer = encode(
                SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
                )
            )
        return self._refuse(f"{told} ({problem})" if told != str(problem) else told, answer)

    async def _refuse(self, reason: str, answer: Answer = None) -> Answer:
        await asyncio.sleep(self._door.settings.failure_ms / 1000)
        raise CloseConnection(reason, answer)
