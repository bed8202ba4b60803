"""A request, or one part of it, that the controller does not carry out."""

from __future__ import annotations

from kraftline.schema.api.error_codes import ErrorCode


class Refusal(Exception):
    """`code` and `message` are what the one who asked is told; both are Kafka's."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
