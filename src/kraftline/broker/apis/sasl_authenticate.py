"""SaslAuthenticate (key 36), versions 0-2. KIP-152, KIP-368.

- The door of a SASL listener (`broker/sasl`) answers it before a client is known. Elsewhere, or
  once it is known, it is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def answer(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
