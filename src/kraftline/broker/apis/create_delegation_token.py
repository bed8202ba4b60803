"""CreateDelegationToken (key 38), versions 1-3. KIP-48, KIP-373.

- For the one who asks, or from version 3 on for another owner, if it may make tokens for it.
- Only who has said who it is may ask, and not by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
- Without delegation.token.secret.key: DELEGATION_TOKEN_AUTH_DISABLED.
"""

from __future__ import annotations

import msgspec

from kraftline.broker.authorization.principal import Principal
from kraftline.broker.context import Context
from kraftline.controller.tokens import create_token
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(
    request: CreateDelegationTokenRequest, context: Context
) -> CreateDelegationTokenResponse:
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    if not context.may_use_tokens:
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, requester, owner, context)
    if str(owner) != str(requester) and not context.may(
        Operation.CREATE_TOKENS, Resource.USER, str(owner)
    ):
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, requester, owner, context)
    if any(each.principal_type != "User" for each in request.renewers):
        return _refused(ErrorCode.INVALID_PRINCIPAL_TYPE, requester, owner, context)
    controller = context.broker.controller
    response = await controller.run(
        lambda image, now: create_token(
            image,
            request,
            (requester.type, requester.name),
            (owner.type, owner.name),
            controller.tokens,
            now,
        )
    )
    return _for_version(response, context)


def _refused(
    error: ErrorCode, requester: Principal, owner: Principal, context: Context
) -> CreateDelegationTokenResponse:
    return _for_version(
        CreateDelegationTokenResponse(
            error_code=error,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        ),
        context,
    )


def _for_version(
    response: CreateDelegationTokenResponse, context: Context
) -> CreateDelegationTokenResponse:
    if context.version >= 3:
        return response
    return msgspec.structs.replace(
        response, token_requester_principal_type="", token_requester_principal_name=""
    )
