"""Kafka's uuid: sixteen bytes that print as 22 characters of URL-safe base64."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Self

# Other tools write the padding, or base64's other alphabet.
_TEXT = re.compile(r"([A-Za-z0-9_+/-]{22})(==)?")
_OTHER_ALPHABET = str.maketrans("+/", "-_")


class Uuid(bytes):
    """A topic, directory, incarnation or cluster id, as Kafka writes and prints it."""

    __slots__ = ()

    def __new__(cls, raw: bytes) -> Self:
        if len(raw) != 16:
            raise ValueError(f"a uuid has 16 bytes, not {len(raw)}")
        return bytes.__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The uuid that Kafka prints as `text`; ValueError when it is none."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a uuid: 22 characters of URL-safe base64")
        return cls(urlsafe_b64decode(found[1].translate(_OTHER_ALPHABET) + "=="))

    def __str__(self) -> str:
        return urlsafe_b64encode(self)[:22].decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid('{self}')"


ZERO = Uuid(bytes(16))
