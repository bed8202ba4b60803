"""The door of a TLS listener that asks clients for certificates: they say who a client is."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.authorization.certificates import NameRules, distinguished_name
from kraftline.broker.authorization.principal import ANONYMOUS, Principal, user
from kraftline.broker.context import PRINCIPAL
from kraftline.server.connection import CloseConnection, Connection, Handle
from kraftline.server.parts import Answer

_LOOKED: Final = "certificate"


class Certified:
    """`handle` is what such a listener calls; `inner` answers."""

    def __init__(self, inner: Handle, rules: NameRules) -> None:
        self._inner = inner
        self._rules = rules

    def handle(self, frame: memoryview, connection: Connection) -> Answer | Awaitable[Answer]:
        if _LOOKED not in connection.state:
            connection.state[_LOOKED] = True
            who = self._principal(connection)
            if who is not ANONYMOUS:
                connection.state[PRINCIPAL] = who
        return self._inner(frame, connection)

    def _principal(self, connection: Connection) -> Principal:
        certificate = connection.certificate
        if not certificate:
            return ANONYMOUS
        name = distinguished_name(certificate)
        found = self._rules.name_of(name)
        if found is None:
            raise CloseConnection(f"no rule of ssl.principal.mapping.rules applies to {name}")
        return user(found)
