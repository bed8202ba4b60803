"""Who a client is, once it is known."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

import msgspec

_USER: Final = "User"


class Principal(msgspec.Struct, frozen=True, gc=False):
    """`by_token` where a delegation token stood for a password: a token makes no further ones."""

    type: str
    name: str
    by_token: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(_USER, "ANONYMOUS")


def user(name: str, *, by_token: bool = False) -> Principal:
    return Principal(_USER, name, by_token)


def parse_principal(text: str) -> Principal:
    """From `type:name`; ValueError where it is not so."""
    kind, colon, name = text.partition(":")
    if not colon or not text:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


@lru_cache(maxsize=4096)
def java_host(address: str) -> str:
    """An address as Java writes it, which is how ACLs and quotas name hosts: IPv6 with all of its
    groups, and IPv4 also where it came through a socket of IPv6."""
    if ":" not in address:
        return address
    plain, percent, zone = address.partition("%")
    try:
        found = ip_address(plain)
    except ValueError:
        return address
    assert isinstance(found, IPv6Address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    packed = found.packed
    groups = (int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2))
    return ":".join(f"{each:x}" for each in groups) + percent + zone
