"""The APIs by key: versions, classes, and which header goes in front of which version."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from kraftline.errors import Unsupported
from kraftline.schema.api.table import APIS, REMOVED
from kraftline.schema.lazy import message_class
from kraftline.schema.types import Message, Versions

_API_VERSIONS = 18
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Api(msgspec.Struct, frozen=True):
    """One API of this Kafka release; `listeners` are the roles that answer it."""

    key: int
    name: str
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    latest_unstable: bool


@cache
def api(key: int) -> Api:
    """The API with this key; Unsupported if there is none, or none any more."""
    if key not in APIS:
        removed = f" ({REMOVED[key]}) was removed in Kafka 4" if key in REMOVED else " is not known"
        raise Unsupported(f"API {key}{removed}")
    name, versions, flexible, listeners, unstable = APIS[key]
    return Api(key, name, Versions.parse(versions), Versions.parse(flexible), listeners, unstable)


def apis() -> tuple[Api, ...]:
    """Every API, by key."""
    return tuple(map(api, APIS))


@cache
def request_class(key: int) -> type[Message]:
    """The request of an API, for all its versions."""
    return _class(key, "Request")


@cache
def response_class(key: int) -> type[Message]:
    """The response of an API, for all its versions."""
    return _class(key, "Response")


def request_header_version(key: int, version: int) -> int:
    """The version of the RequestHeader before a request."""
    return 2 if _checked(key, version) else 1


def response_header_version(key: int, version: int) -> int:
    """The version of the ResponseHeader before a response.

    ApiVersions always has 0: who asks does not know yet what the broker understands.
    """
    return 1 if _checked(key, version) and key != _API_VERSIONS else 0


def _checked(key: int, version: int) -> bool:
    known = api(key)
    if version not in known.versions:
        raise Unsupported(f"{known.name} version {version}: versions {known.versions} are known")
    return version in known.flexible


def _class(key: int, kind: str) -> type[Message]:
    name = api(key).name
    return message_class("kraftline.schema.api", _WORDS.sub("_", name).lower(), f"{name}{kind}")
