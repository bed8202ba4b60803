"""SASL/PLAIN (RFC 4616): a name and a password in one message."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kraftline.broker.authorization.principal import user
from kraftline.broker.sasl.exchange import Exchange, NotAuthenticated


class Plain(Exchange):
    """`passwords` by user."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, message: bytes) -> bytes:
        parts = message.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        # Compared also where there is no such user, so that both take as long.
        is_right = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not is_right:
            raise _refused("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != name:
            raise _refused(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.principal = user(name)
        return b""


def _refused(text: str) -> NotAuthenticated:
    return NotAuthenticated(text, text)
