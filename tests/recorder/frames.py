"""Requests and answers as frames, without their lengths."""

from __future__ import annotations

import struct

from kraftline.schema.api.registry import (
    request_header_version,
    response_class,
    response_header_version,
)
from kraftline.schema.codec import decode, encode
from kraftline.schema.types import Message

CORRELATION_ID = 0x01020304


def frame(request: Message, key: int, version: int, client_id: str | None = "recorder") -> bytes:
    """A request with the header that belongs to its version."""
    flexible = request_header_version(key, version) == 2
    return header(key, version, client_id, flexible=flexible) + encode(request, version)


def header(
    key: int, version: int, client_id: str | bytes | None = "recorder", *, flexible: bool = False
) -> bytes:
    head = struct.pack(">hhi", key, version, CORRELATION_ID)
    if client_id is None:
        head += b"\xff\xff"
    else:
        text = client_id.encode() if isinstance(client_id, str) else client_id
        head += struct.pack(">h", len(text)) + text
    return head + b"\0" if flexible else head


def answered(answer: bytes, key: int, version: int) -> Message:
    """What an answer says; its header must be the one that belongs to its version."""
    head = struct.pack(">i", CORRELATION_ID)
    if response_header_version(key, version) == 1:
        head += b"\0"
    assert answer.startswith(head), answer[:8].hex()
    return decode(response_class(key), answer[len(head) :], version)
