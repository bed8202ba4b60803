"""SASL/SCRAM (RFC 5802, RFC 7677): the client proves that it knows a password of which the server
keeps only keys, and the server that it has them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kraftline.broker.authorization.principal import Principal
from kraftline.broker.sasl.exchange import Exchange, NotAuthenticated
from kraftline.metadata.add_scram import MIN_ITERATIONS, Mechanism
from kraftline.metadata.image.scram import ScramCredential
from kraftline.server.connection import CloseConnection

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_BY_TOKEN: Final = "tokenauth"
_NO_CREDENTIALS: Final = "Authentication failed: Invalid user credentials"


class Identity(msgspec.Struct, frozen=True):
    """Whom a name stands for, and what proves it; `until_ms` is when that ends."""

    principal: Principal
    credential: ScramCredential
    until_ms: int | None = None


# From a name, and whether it is that of a delegation token; None where nobody has it.
FindIdentity = Callable[[str, bool], "Identity | Awaitable[Identity | None] | None"]


class Scram(Exchange):
    def __init__(self, mechanism: Mechanism, find: FindIdentity) -> None:
        self._mechanism = mechanism
        self._find = find
        self._identity: Identity | None = None
        self._nonce = ""
        self._said = ""  # by both, without the proofs

    def step(self, message: bytes) -> bytes | Awaitable[bytes]:
        text = message.decode("utf-8", "replace")
        if self._identity is None:
            return self._first(text)
        return self._final(text, self._identity)

    def _first(self, text: str) -> bytes | Awaitable[bytes]:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise NotAuthenticated("not a first message of SCRAM")
        extensions = dict(
            each.partition("=")[::2] for each in match["extensions"].split(",") if each
        )
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        found = self._find(name, extensions.get(_BY_TOKEN, "").lower() == "true")
        if found is None or isinstance(found, Identity):
            return self._challenge(match, name, found)
        return self._challenge_later(match, name, found)

    async def _challenge_later(
        self, match: re.Match[str], name: str, finding: Awaitable[Identity | None]
    ) -> bytes:
        return self._challenge(match, name, await finding)

    def _challenge(self, match: re.Match[str], name: str, found: Identity | None) -> bytes:
        if found is None:
            raise NotAuthenticated(_NO_CREDENTIALS)
        if match["authorization"] is not None and match["authorization"] != name:
            told = (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
            raise NotAuthenticated(told, told)
        credential = found.credential
        if credential.iterations < MIN_ITERATIONS:
            raise NotAuthenticated(f"{credential.iterations} iterations are too few")
        self._identity = found
        self._nonce = match["nonce"] + secrets.token_urlsafe(20)
        salt = base64.b64encode(credential.salt).decode()
        challenge = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._said = f"{match['bare']},{challenge}"
        return challenge.encode()

    def _final(self, text: str, identity: Identity) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise NotAuthenticated("not a final message of SCRAM")
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise NotAuthenticated("Invalid client nonce in the final client message.")
        said = f"{self._said},{match['bare']}".encode()
        hash, credential = self._mechanism.hash, identity.credential
        signature = hmac.digest(credential.stored_key, said, hash)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise CloseConnection("a proof of another length")  # as Kafka, which stumbles here
        client_key = bytes(map(int.__xor__, signature, proof))
        if not hmac.compare_digest(hashlib.new(hash, client_key).digest(), credential.stored_key):
            raise NotAuthenticated("Invalid client credentials")
        self.principal, self.until_ms = identity.principal, identity.until_ms
        server_signature = hmac.digest(credential.server_key, said, hash)
        return b"v=" + base64.b64encode(server_signature)
