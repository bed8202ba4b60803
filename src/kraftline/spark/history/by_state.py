"""Changes of things by how they were and how they are, from rows of their history tables.

None where the thing was not, or is not, there; times are microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from kraftline.lake.names import (
    CONFIG_RESOURCES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    number_of,
)
from kraftline.metadata import words
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.configs import ConfigResource
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential
from kraftline.metadata.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Listener,
    SupportedFeature,
)
from kraftline.metadata.words import Change
from kraftline.metadata.words.security import MECHANISMS
from kraftline.schema.uuids import Uuid

Row: TypeAlias = dict[str, Any]


def changes_by_state(
    table: str, was: Row | None, now: Row | None, *, directly: bool = True
) -> list[Change]:
    """What happened to a thing of a table; not `directly`: behind a gap."""
    known = now or was
    assert known is not None
    if table == "brokers":
        return words.broker_changes(known["broker"], broker(was), broker(now), directly=directly)
    return [change for change in _SAY[table](known, was, now) if change is not None]


def broker(row: Row | None) -> BrokerRegistration | None:
    if row is None:
        return None
    cordoned = row["cordoned_directories"]
    return BrokerRegistration(
        id=row["broker"],
        epoch=row["broker_epoch"],
        incarnation_id=Uuid.parse(row["incarnation_id"]),
        listeners=_listeners(row),
        features=_features(row),
        rack=row["rack"],
        fenced=row["fenced"],
        in_controlled_shutdown=row["in_controlled_shutdown"],
        is_migrating_zk_broker=row["is_migrating_zk_broker"],
        directories=uuids(row["directories"]),
        cordoned_directories=None if cordoned is None else uuids(cordoned),
    )


def uuids(texts: Iterable[str]) -> tuple[Uuid, ...]:
    return tuple(map(Uuid.parse, texts))


def _controllers(known: Row, was: Row | None, now: Row | None) -> list[Change]:
    return words.controller_changes(known["controller"], _controller(was), _controller(now))


def _controller(row: Row | None) -> ControllerRegistration | None:
    if row is None:
        return None
    return ControllerRegistration(
        id=row["controller"],
        incarnation_id=Uuid.parse(row["incarnation_id"]),
        zk_migration_ready=row["zk_migration_ready"],
        listeners=_listeners(row),
        features=_features(row),
    )


def _listeners(row: Row) -> tuple[Listener, ...]:
    names = ("name", "host", "port", "security_protocol")
    return tuple(Listener(*(each[name] for name in names)) for each in row["endpoints"])


def _features(row: Row) -> tuple[SupportedFeature, ...]:
    names = ("name", "min_supported_version", "max_supported_version")
    return tuple(SupportedFeature(*(each[name] for name in names)) for each in row["features"])


def _configs(known: Row, was: Row | None, now: Row | None) -> list[Change | None]:
    def value(row: Row | None, secret: str) -> str | None:
        # A secret's value is not kept: all that counts is that it is set, and not as before.
        return None if row is None else secret if row["is_secret"] else row["value"]

    resource = ConfigResource(
        number_of(known["resource_type"], CONFIG_RESOURCES), known["resource"]
    )
    before, after = value(was, "before"), value(now, "after")
    return [words.config_change(resource, known["name"], before, after)]


def _features_set(known: Row, was: Row | None, now: Row | None) -> list[Change | None]:
    before, after = (None if row is None else row["level"] for row in (was, now))
    return [words.feature_change(known["feature"], before, after)]


def _quotas(known: Row, was: Row | None, now: Row | None) -> list[Change | None]:
    entity = tuple((each["entity_type"], each["entity_name"]) for each in known["entity"])
    before, after = (None if row is None else row["value"] for row in (was, now))
    return [words.quota_change(entity, known["key"], before, after)]


def _acls(known: Row, was: Row | None, now: Row | None) -> list[Change]:
    return words.acl_changes(_acl(was), _acl(now))


def _acl(row: Row | None) -> Acl | None:
    if row is None:
        return None
    return Acl(
        number_of(row["resource_type"], RESOURCE_TYPES),
        row["resource"],
        number_of(row["pattern_type"], PATTERN_TYPES),
        row["principal"],
        row["host"],
        number_of(row["operation"], OPERATIONS),
        number_of(row["permission"], PERMISSIONS),
    )


def _scram(known: Row, was: Row | None, now: Row | None) -> list[Change | None]:
    def credential(row: Row | None, salt: bytes) -> ScramCredential | None:
        return None if row is None else ScramCredential(salt, b"", b"", row["iterations"])

    user = (number_of(known["mechanism"], MECHANISMS), known["user"])
    return [words.scram_change(user, credential(was, b"before"), credential(now, b"after"))]


def _tokens(known: Row, was: Row | None, now: Row | None) -> list[Change | None]:
    return [words.token_change(_token(was), _token(now))]


def _token(row: Row | None) -> DelegationToken | None:
    if row is None:
        return None
    return DelegationToken(
        row["token_id"],
        row["owner"],
        row["requester"],
        tuple(row["renewers"]),
        *(row[name] // 1000 for name in ("issue_time", "max_time", "expiration_time")),
    )


_SAY: Final[
    dict[str, Callable[[Row, Row | None, Row | None], list[Change] | list[Change | None]]]
] = {
    "controllers": _controllers,
    "configs": _configs,
    "features": _features_set,
    "client_quotas": _quotas,
    "acls": _acls,
    "scram": _scram,
    "delegation_tokens": _tokens,
}
