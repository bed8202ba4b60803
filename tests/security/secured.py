"""Real Kafka and a node of ours with the same users, the same super users and no other rights.

Whoever comes through the plain listener is a super user; users come through the SASL listener.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tests.broker.running import running
from tests.oracle.kafka import HOST, KraftCluster

PASSWORDS: Final = {"admin": "secret", "alice": "alice's", "bob": "bob,=secret"}
_USERS: Final = " ".join(f'user_{name}="{word}"' for name, word in PASSWORDS.items())
_LISTENER: Final = "listener.name.sasl_plaintext"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SESSION_MS: Final = 1_500
FAILURE_MS: Final = 30
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f"{_LISTENER}.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
    f'PlainLoginModule required username="admin" password="secret" {_USERS};',
    f"{_LISTENER}.scram-sha-256.sasl.jaas.config": _SCRAM,
    f"{_LISTENER}.scram-sha-512.sasl.jaas.config": _SCRAM,
    # One mechanism whose sessions end.
    f"{_LISTENER}.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
    "connection.failed.authentication.delay.ms": str(FAILURE_MS),
    "delegation.token.secret.key": "master",
    "log.index.size.max.bytes": "4096",
}


class Secured(msgspec.Struct, frozen=True):
    """Where its listeners are, and its metadata log."""

    plain: tuple[str, int]
    sasl: tuple[str, int]
    data: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.plain[0]}:{self.plain[1]}"

    @property
    def sasl_bootstrap(self) -> str:
        return f"{self.sasl[0]}:{self.sasl[1]}"


@contextmanager
def kafka(root: Path, settings: Mapping[str, str] | None = None) -> Iterator[Secured]:
    properties = {**SETTINGS, **(settings or {})}
    with KraftCluster(root, dynamic=True, properties=properties) as cluster:
        cluster.start()
        host, _, port = cluster.sasl_bootstrap.rpartition(":")
        yield Secured((HOST, cluster.port(1)), (host, int(port)), cluster.data(1))


@contextmanager
def ours(root: Path, settings: Mapping[str, str] | None = None) -> Iterator[Secured]:
    listeners = f"PLAINTEXT://{HOST}:0,SASL_PLAINTEXT://{HOST}:0"
    with running(root, {**SETTINGS, "listeners": listeners, **(settings or {})}) as node:
        plain, sasl = (each.port for each in node.node.listeners)
        yield Secured((HOST, plain), (HOST, sasl), root)
