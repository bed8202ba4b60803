"""Delegation tokens by their id."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from immutables import Map

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied, drop_unnamed
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord


class DelegationToken(msgspec.Struct, frozen=True, gc=False):
    """Principals are `type:name`; times are in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int

    def __repr__(self) -> str:
        return "DelegationToken([hidden])"


class DelegationTokensImage(msgspec.Struct, frozen=True, gc=False):
    tokens: Map[str, DelegationToken] = Map()

    @property
    def is_empty(self) -> bool:
        return not self.tokens

    def losses(self, options: WriteOptions) -> Iterator[str]:
        if self.tokens and not options.version.delegation_token_supported:
            yield f"DelegationTokenImage({', '.join(sorted(self.tokens))})"

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        if not options.version.delegation_token_supported:
            return
        for key, token in sorted(self.tokens.items()):
            record = DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=token.renewers,
                issue_timestamp=token.issue_timestamp,
                max_timestamp=token.max_timestamp,
                expiration_timestamp=token.expiration_timestamp,
                token_id=key,
            )
            yield record, 0


class DelegationTokensDelta:
    __slots__ = ("changes", "image")

    def __init__(self, image: DelegationTokensImage) -> None:
        self.image = image
        self.changes: dict[str, DelegationToken | None] = {}

    def replay_add(self, record: DelegationTokenRecord) -> None:
        for principal in (*record.renewers, record.owner, record.requester):
            if ":" not in principal:
                raise ReplayError(
                    f"expected a string in format principalType:principalName but got {principal}",
                    record=record,
                )
        self.changes[record.token_id] = DelegationToken(
            record.token_id,
            record.owner,
            record.requester,
            record.renewers,
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def replay_remove(self, record: RemoveDelegationTokenRecord) -> None:
        # One that is not there may be removed.
        self.changes[record.token_id] = None

    def finish_snapshot(self) -> None:
        drop_unnamed(self.image.tokens, self.changes)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> DelegationTokensImage:
        tokens = applied(self.image.tokens, self.changes)
        return self.image if tokens is self.image.tokens else DelegationTokensImage(tokens)
