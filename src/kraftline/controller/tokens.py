"""Delegation tokens are made, prolonged and ended.

- A token is an id, and the HMAC of it by a secret that all nodes have: who knows that is let in as
  the token's owner. The metadata holds no HMAC.
- It ends when it is not prolonged in time, and in any case after its longest life. Its owner and
  its renewers prolong and end it.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Final

import msgspec

from kraftline.config.effective import Config
from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.api.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraftline.schema.api.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord

_LAST_MS: Final = 2**63 - 1
_USER: Final = "User"


class TokenRules(msgspec.Struct, frozen=True):
    """What the configuration says of tokens; without a `secret` there are none."""

    secret: str | None
    longest_ms: int
    renewal_ms: int

    def __repr__(self) -> str:
        return "TokenRules([hidden])"

    def hmac_of(self, token_id: str) -> bytes:
        assert self.secret is not None
        return _hmac(self.secret, token_id)

    def refusal(self, image: MetadataImage) -> ErrorCode | None:
        """Why there can be no tokens."""
        if self.secret is None:
            return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        version = image.features.metadata_version
        if version is None or not version.delegation_token_supported:
            return ErrorCode.UNSUPPORTED_VERSION
        return None


def token_rules(config: Config) -> TokenRules:
    secret = config["delegation.token.secret.key"]
    return TokenRules(
        str(secret) if secret else None,
        config.whole("delegation.token.max.lifetime.ms"),
        config.whole("delegation.token.expiry.time.ms"),
    )


def create_token(
    image: MetadataImage,
    request: CreateDelegationTokenRequest,
    requester: tuple[str, str],
    owner: tuple[str, str],
    rules: TokenRules,
    now: int,
) -> Decision[CreateDelegationTokenResponse]:
    """`requester` and `owner` are types and names of principals."""
    told = CreateDelegationTokenResponse(
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
    )
    refused = rules.refusal(image)
    if refused is None and any(each.principal_type != _USER for each in request.renewers):
        refused = ErrorCode.INVALID_PRINCIPAL_TYPE
    if refused is not None:
        return Decision(msgspec.structs.replace(told, error_code=refused))
    longest = rules.longest_ms
    if request.max_lifetime_ms > 0:
        longest = min(longest, request.max_lifetime_ms)
    until = _later(now, longest)
    record = DelegationTokenRecord(
        owner=":".join(owner),
        requester=":".join(requester),
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=now,
        max_timestamp=until,
        expiration_timestamp=min(until, _later(now, rules.renewal_ms)),
        token_id=str(random_uuid()),
    )
    response = msgspec.structs.replace(
        told,
        issue_timestamp_ms=now,
        expiry_timestamp_ms=record.expiration_timestamp,
        max_timestamp_ms=until,
        token_id=record.token_id,
        hmac=rules.hmac_of(record.token_id),
    )
    return Decision(response, [(record, 0)])


def renew_token(
    image: MetadataImage,
    request: RenewDelegationTokenRequest,
    requester: str,
    rules: TokenRules,
    now: int,
) -> Decision[RenewDelegationTokenResponse]:
    token = _found(image, request.hmac, rules)
    if isinstance(token, ErrorCode):
        return Decision(RenewDelegationTokenResponse(error_code=token))
    if is_over(token, now):
        refused = ErrorCode.DELEGATION_TOKEN_EXPIRED
        return Decision(RenewDelegationTokenResponse(error_code=refused))
    if not _may_renew(token, requester):
        refused = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        return Decision(RenewDelegationTokenResponse(error_code=refused))
    longer = rules.renewal_ms
    if request.renew_period_ms > 0:
        longer = min(longer, request.renew_period_ms)
    until = min(token.max_timestamp, _later(now, longer))
    return Decision(
        RenewDelegationTokenResponse(expiry_timestamp_ms=until), [(_record(token, until), 0)]
    )


def expire_token(
    image: MetadataImage,
    request: ExpireDelegationTokenRequest,
    requester: str,
    rules: TokenRules,
    now: int,
) -> Decision[ExpireDelegationTokenResponse]:
    token = _found(image, request.hmac, rules)
    if isinstance(token, ErrorCode):
        return Decision(ExpireDelegationTokenResponse(error_code=token))
    if not _may_renew(token, requester):
        refused = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        return Decision(ExpireDelegationTokenResponse(error_code=refused))
    if request.expiry_time_period_ms < 0:  # at once
        gone = RemoveDelegationTokenRecord(token_id=token.token_id)
        return Decision(ExpireDelegationTokenResponse(expiry_timestamp_ms=now), [(gone, 0)])
    if is_over(token, now):
        refused = ErrorCode.DELEGATION_TOKEN_EXPIRED
        return Decision(ExpireDelegationTokenResponse(error_code=refused))
    until = min(token.max_timestamp, _later(now, request.expiry_time_period_ms))
    return Decision(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=until), [(_record(token, until), 0)]
    )


def sweep_tokens(image: MetadataImage, now: int) -> Decision[int]:
    """Remove those that are over; how many."""
    over = [key for key, token in image.delegation_tokens.tokens.items() if is_over(token, now)]
    records = [(RemoveDelegationTokenRecord(token_id=key), 0) for key in over]
    return Decision(len(over), records)


def is_over(token: DelegationToken, now: int) -> bool:
    return token.max_timestamp < now or token.expiration_timestamp < now


def _found(image: MetadataImage, proof: bytes, rules: TokenRules) -> DelegationToken | ErrorCode:
    refused = rules.refusal(image)
    if refused is not None:
        return refused
    for token in image.delegation_tokens.tokens.values():
        if hmac.compare_digest(rules.hmac_of(token.token_id), proof):
            return token
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _may_renew(token: DelegationToken, principal: str) -> bool:
    return principal == token.owner or principal in token.renewers


def _record(token: DelegationToken, until: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=until,
        token_id=token.token_id,
    )


def _later(now: int, duration: int) -> int:
    return min(now + duration, _LAST_MS)


@lru_cache(maxsize=10_000)
def _hmac(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")
