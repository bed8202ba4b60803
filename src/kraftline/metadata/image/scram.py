"""SCRAM credentials by mechanism and user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from immutables import Map

from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied, drop_unnamed
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord

# (mechanism, user name)
ScramUser: TypeAlias = tuple[int, str]

_MECHANISMS = {1: "SCRAM_SHA_256", 2: "SCRAM_SHA_512"}


class ScramCredential(msgspec.Struct, frozen=True, gc=False):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


class ScramImage(msgspec.Struct, frozen=True, gc=False):
    """Mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    credentials: Map[ScramUser, ScramCredential] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.credentials

    def losses(self, options: WriteOptions) -> Iterator[str]:
        if options.version.scram_supported or not self.credentials:
            return
        users: dict[int, list[str]] = {}
        for mechanism, name in sorted(self.credentials):
            users.setdefault(mechanism, []).append(name)
        parts = [
            f"{_MECHANISMS.get(mechanism, 'UNKNOWN')}:{', '.join(names)}}},{{"
            for mechanism, names in users.items()
        ]
        yield "ScramImage({" + "".join(parts) + "})"

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        if not options.version.scram_supported:
            return
        for mechanism, name in sorted(self.credentials):
            credential = self.credentials[mechanism, name]
            record = UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )
            yield record, 0


class ScramDelta:
    __slots__ = ("changes", "image")

    def __init__(self, image: ScramImage) -> None:
        self.image = image
        self.changes: dict[ScramUser, ScramCredential | None] = {}

    def replay_add(self, record: UserScramCredentialRecord) -> None:
        self.changes[record.mechanism, record.name] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )

    def replay_remove(self, record: RemoveUserScramCredentialRecord) -> None:
        # One that is not there may be removed.
        self.changes[record.mechanism, record.name] = None

    def finish_snapshot(self) -> None:
        drop_unnamed(self.image.credentials, self.changes)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> ScramImage:
        credentials = applied(self.image.credentials, self.changes)
        return self.image if credentials is self.image.credentials else ScramImage(credentials)
