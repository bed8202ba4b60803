"""ExpireDelegationToken (key 40), versions 1-2. KIP-48.

- By its HMAC, by its owner or one of its renewers.
- Only who has said who it is may ask, and not by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.controller.tokens import expire_token
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def answer(
    request: ExpireDelegationTokenRequest, context: Context
) -> ExpireDelegationTokenResponse:
    if not context.may_use_tokens:
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
        )
    controller, requester = context.broker.controller, str(context.principal)
    return await controller.run(
        lambda image, now: expire_token(image, request, requester, controller.tokens, now)
    )
