"""A client that says who it is, step by step, rightly or wrongly."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, Final

import msgspec

from kraftline.schema.api.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraftline.schema.api.sasl_handshake import SaslHandshakeRequest
from kraftline.schema.types import Message
from tests.broker.talking import Closed, Talk

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NONCE: Final = "rOprNGfwEbeRWgbNEkqO"


class Saying(Talk):
    """`said` has every answer, in plain values; "closed" where there was none."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self.said: list[Any] = []

    def say(self, request: Message, version: int) -> Message | None:
        try:
            answer = self.ask(request, version)
        except (Closed, OSError):
            self.said.append("closed")
            return None
        told = msgspec.to_builtins(answer, enc_hook=str)
        if "mechanisms" in told:
            told["mechanisms"] = sorted(told["mechanisms"])
        self.said.append(told)
        return answer

    def handshake(self, mechanism: str, version: int = 1) -> None:
        self.say(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> bytes | None:
        """What is answered to a token; None where it failed."""
        answer = self.say(SaslAuthenticateRequest(auth_bytes=token), version)
        if not isinstance(answer, SaslAuthenticateResponse) or answer.error_code:
            return None
        return answer.auth_bytes

    def bare(self, token: bytes) -> bytes | None:
        """The same without a request around it."""
        try:
            self.socket.sendall(len(token).to_bytes(4, "big") + token)
            answer = self.frame()
        except (Closed, OSError):
            self.said.append("closed")
            return None
        self.said.append(answer)
        return answer

    def log_in(self, name: str, password: str) -> None:
        self.handshake("PLAIN")
        assert self.authenticate(plain(name, password)) is not None, self.said
        self.said.clear()


def plain(name: str, password: str, authorization: str = "") -> bytes:
    return f"{authorization}\0{name}\0{password}".encode()


class ScramClient:
    """The client's side, with a nonce that is always the same."""

    def __init__(self, mechanism: str, name: str, password: str, extensions: str = "") -> None:
        self.hash = HASHES[mechanism]
        self.password = password
        self.bare = f"n={name},r={NONCE}{extensions}"

    def first(self, authorization: str = "") -> bytes:
        return f"n,{authorization},{self.bare}".encode()

    def final(self, challenge: bytes, *, nonce: str | None = None, shorter: int = 0) -> bytes:
        text = challenge.decode()
        parts = dict(each.partition("=")[::2] for each in text.split(","))
        salted = hashlib.pbkdf2_hmac(
            self.hash, self.password.encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        without = f"c=biws,r={parts['r'] if nonce is None else nonce}"
        self.all = f"{self.bare},{text},{without}".encode()
        self.salted = salted
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored = hashlib.new(self.hash, client_key).digest()
        signature = hmac.digest(stored, self.all, self.hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        proof = proof[: len(proof) - shorter]
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def is_from_server(self, message: bytes) -> bool:
        """Has the server proven that it knows the user's keys?"""
        key = hmac.digest(self.salted, b"Server Key", self.hash)
        return message == b"v=" + base64.b64encode(hmac.digest(key, self.all, self.hash))
