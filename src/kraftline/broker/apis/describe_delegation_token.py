"""DescribeDelegationToken (key 41), versions 1-3. KIP-48, KIP-373.

- Tokens of owners, or of all (null), that the client owns or renews, or may describe: the token
  itself, or the tokens of its owner. An empty list of owners means none.
- Only who has said who it is may ask, and not by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
"""

from __future__ import annotations

from kraftline.broker.authorization.principal import Principal, parse_principal
from kraftline.broker.context import Context
from kraftline.controller.tokens import TokenRules
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.schema.api.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(
    request: DescribeDelegationTokenRequest, context: Context
) -> DescribeDelegationTokenResponse:
    rules = context.broker.controller.tokens
    if not context.may_use_tokens:
        return DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        )
    if rules.secret is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    tokens = context.broker.cache.image.delegation_tokens.tokens.values()
    return DescribeDelegationTokenResponse(
        tokens=tuple(
            _told(each, rules, context.version)
            for each in tokens
            if _is_shown(each, owners, context)
        )
    )


def _is_shown(token: DelegationToken, owners: set[str] | None, context: Context) -> bool:
    concerned = {token.owner, *token.renewers}
    if owners is not None and concerned.isdisjoint(owners):
        return False
    return (
        str(context.principal) in concerned
        or context.may(Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id)
        or context.may(Operation.DESCRIBE_TOKENS, Resource.USER, token.owner)
    )


def _told(token: DelegationToken, rules: TokenRules, version: int) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    if version < 3:
        requester = Principal("", "")
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=rules.hmac_of(token.token_id),
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in map(parse_principal, token.renewers)
        ),
    )
