"""Delegation tokens as SCRAM takes them: the id stands for a name, the HMAC for a password.

The keys of such a password are made when a token is first used, in a thread: that takes thousands
of rounds by design.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable
from typing import Final

from kraftline.broker.authorization.principal import parse_principal, user
from kraftline.broker.broker import Broker
from kraftline.broker.sasl.scram import Identity
from kraftline.metadata.add_scram import (
    MIN_ITERATIONS,
    Mechanism,
    credential,
    salted_password,
)
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential

_SALT_BYTES: Final = 20
_KEPT: Final = 1_000


class TokenIdentities:
    """Of one mechanism."""

    def __init__(self, mechanism: Mechanism, broker: Broker) -> None:
        self._mechanism = mechanism
        self._broker = broker
        self._credentials: dict[str, ScramCredential] = {}

    def find(self, token_id: str) -> Identity | Awaitable[Identity | None] | None:
        token = self._broker.cache.image.delegation_tokens.tokens.get(token_id)
        if token is None or self._broker.controller.tokens.secret is None:
            return None
        found = self._credentials.get(token_id)
        return self._later(token) if found is None else _identity(token, found)

    async def _later(self, token: DelegationToken) -> Identity:
        password = base64.b64encode(self._broker.controller.tokens.hmac_of(token.token_id))
        salt = os.urandom(_SALT_BYTES)
        salted = await asyncio.to_thread(
            salted_password, self._mechanism, password.decode(), salt, MIN_ITERATIONS
        )
        made = credential(self._mechanism, token.token_id, salted, salt, MIN_ITERATIONS)
        if len(self._credentials) >= _KEPT:
            self._credentials.clear()
        kept = ScramCredential(made.salt, made.stored_key, made.server_key, made.iterations)
        self._credentials[token.token_id] = kept
        return _identity(token, kept)


def _identity(token: DelegationToken, kept: ScramCredential) -> Identity:
    owner = user(parse_principal(token.owner).name, by_token=True)
    return Identity(owner, kept, token.expiration_timestamp)
