"""SCRAM users that a new cluster starts with, as `--add-scram` writes them:
`SCRAM-SHA-256=[name=alice,password=secret]`, with `salt`, `iterations` and, in place of the
password, `saltedpassword` if wanted. The record holds keys from which no password comes back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os

import msgspec

from kraftline.config.java_numbers import java_integer
from kraftline.errors import KraftlineError
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord

# Kafka's bounds and its default, which is the lower one.
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
_SALT_BYTES = 20


class BadScram(KraftlineError):
    """An --add-scram argument that does not say a credential."""


class Mechanism(msgspec.Struct, frozen=True):
    name: str
    type: int
    hash: str


MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("SCRAM-SHA-256", 1, "sha256"),
        Mechanism("SCRAM-SHA-512", 2, "sha512"),
    )
}


def parse_scram(argument: str) -> UserScramCredentialRecord:
    """The credential that one argument says; a salt is drawn where it gives none."""
    name, equals, config = argument.strip().partition("=")
    if not equals:
        raise BadScram(f"Failed to find equals sign in SCRAM argument '{argument.strip()}'")
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        raise BadScram(
            f"The add-scram mechanism {name} is not supported. "
            f"Supported mechanisms are: {', '.join(MECHANISMS)}"
        )
    if not config.startswith("["):
        raise BadScram("Expected configuration string to start with [")
    if not config.endswith("]"):
        raise BadScram("Expected configuration string to end with ]")
    return _record(mechanism, _components(config[1:-1]))


def credential(
    mechanism: Mechanism, user: str, salted_password: bytes, salt: bytes, iterations: int
) -> UserScramCredentialRecord:
    """What RFC 5802 keeps of a salted password."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", mechanism.hash),
        iterations=iterations,
    )


def salted_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


def _components(config: str) -> dict[str, str]:
    """`name=value` pairs; a value may stand in quotes. A comma at the end is let pass, as in
    Kafka, where Java's split does so."""
    found: dict[str, str] = {}
    # Of commas alone nothing is left at all.
    parts = [] if config and not config.strip(",") else config.rstrip(",").split(",")
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            raise BadScram(f"No equals sign found in SCRAM component: {part}")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        found[key] = value
    return found


def _record(mechanism: Mechanism, found: dict[str, str]) -> UserScramCredentialRecord:
    user = found.pop("name", None)
    if user is None:
        raise BadScram("You must supply 'name' to add-scram")
    given_salt = _decoded(found.pop("salt", None), "salt")
    given_iterations = found.pop("iterations", None)
    iterations = MIN_ITERATIONS
    if given_iterations is not None:
        parsed = java_integer(given_iterations)
        if parsed is None:
            raise BadScram(f"Failed to parse iterations count: {given_iterations}")
        iterations = parsed
    password, salted = found.pop("password", None), found.pop("saltedpassword", None)
    if password is None:
        if salted is None:
            raise BadScram("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if given_salt is None:
            raise BadScram("You must supply 'salt' with 'saltedpassword' to add-scram")
    # As in Kafka, a password wins over a salted one, which is not even looked at then.
    key = _decoded(salted, "saltedPassword") if password is None else None
    if found:
        raise BadScram(f"Unknown SCRAM configurations: {', '.join(sorted(found))}")
    java_name = mechanism.name.replace("-", "_")
    if iterations < MIN_ITERATIONS:
        raise BadScram(
            f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {java_name}"
        )
    if iterations > MAX_ITERATIONS:
        raise BadScram(
            f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {java_name}"
        )
    salt = os.urandom(_SALT_BYTES) if given_salt is None else given_salt
    if password is not None:
        key = salted_password(mechanism, password, salt, iterations) if password else b""
    if not key:
        raise BadScram(f"The password of {user!r} is empty")
    return credential(mechanism, user, key, salt, iterations)


def _decoded(text: str | None, what: str) -> bytes | None:
    """Base64 as Java reads it: the padding may be left out."""
    if text is None:
        return None
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise BadScram(f"Failed to decode given {what}: {text}") from None
