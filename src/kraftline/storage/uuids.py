"""Kafka's text form of a UUID: 22 characters of base64url without padding."""

from __future__ import annotations

import base64
import re
import uuid

_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")

ZERO = uuid.UUID(int=0)
METADATA_TOPIC_ID = uuid.UUID(int=1)


def uuid_to_text(value: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> uuid.UUID:
    """ValueError where the text is no UUID of Kafka's."""
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a UUID in Kafka's form (22 characters of base64url)")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))
