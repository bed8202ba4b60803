"""SaslHandshake (key 17), versions 0-1. KIP-43, KIP-152.

- The door of a SASL listener (`broker/sasl`) answers it before a client is known. Elsewhere, or
  once it is known, it is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def answer(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
