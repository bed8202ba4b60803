"""Records that say all there is to say of a thing, as rows of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kraftline.lake.names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
)
from kraftline.lake.tables import TABLES
from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION, MINIMUM, VERSIONS
from kraftline.metadata.words.security import MECHANISMS

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[object, ...]

_LAST_MS: Final = (1 << 63) // 1000 - 1  # what lies beyond is no time
_LEVELS: Final = frozenset(version.level for version in VERSIONS if version >= MINIMUM)
_PROTOCOLS: Final = range(4)
_KEYS: Final = {name: table.keys for name, table in TABLES.items()}


class Said(NamedTuple):
    """`state` is the thing's row from now on; None if it is not there any more."""

    table: str
    key: Key
    state: Row | None


def said_of(record_type: str, fields: Row) -> Said | None:
    """What a record says; None if no node would take it: all stays as it was."""
    return _SAID[record_type](fields)


def key_of(table: str, row: Row) -> Key:
    return tuple([row[name] for name in _KEYS[table]])


def name_of(code: int, names: Mapping[int, str]) -> str:
    return names.get(code) or str(code)


def by_name(things: Iterable[Row]) -> list[Row]:
    """In the order of their names; a name that comes twice counts as it comes last."""
    last = {each["name"]: each for each in things}
    return [last[name] for name in sorted(last)]


def _topic(fields: Row) -> Said:
    return _there("topics", {"topic": fields["name"], "topic_id": fields["topic_id"]})


def _controller(fields: Row) -> Said | None:
    points = fields["end_points"]
    if any(point["security_protocol"] not in _PROTOCOLS for point in points):
        return None
    row = {
        "controller": fields["controller_id"],
        "incarnation_id": fields["incarnation_id"],
        "zk_migration_ready": fields["zk_migration_ready"],
        "endpoints": by_name(points),
        "features": by_name(fields["features"]),
    }
    return _there("controllers", row)


def _acl(fields: Row) -> Said:
    row = {
        "id": fields["id"],
        "resource_type": name_of(fields["resource_type"], RESOURCE_TYPES),
        "resource": fields["resource_name"],
        "pattern_type": name_of(fields["pattern_type"], PATTERN_TYPES),
        "principal": fields["principal"],
        "host": fields["host"],
        "operation": name_of(fields["operation"], OPERATIONS),
        "permission": name_of(fields["permission_type"], PERMISSIONS),
    }
    return _there("acls", row)


def _quota(fields: Row) -> Said:
    last = {each["entity_type"]: each["entity_name"] for each in fields["entity"]}
    entity = [{"entity_type": kind, "entity_name": last[kind]} for kind in sorted(last)]
    row = {
        "entity": entity,
        "entity_text": ",".join(map(_entity_text, entity)),
        "key": fields["key"],
        "value": fields["value"],
    }
    said = _there("client_quotas", row)
    return said._replace(state=None) if fields["remove"] else said


def _entity_text(each: Row) -> str:
    """`user=alice`; a type without a name is its default. No two entities share a text: what
    separates is marked where it is part of a name."""
    kind, name = each["entity_type"], each["entity_name"]
    if name is None:
        return str(kind)
    marked = name.replace("\\", "\\\\").replace(",", "\\,")
    return f"{kind}={marked}"


def _scram(fields: Row) -> Said:
    row = {
        "user": fields["name"],
        "mechanism": name_of(fields["mechanism"], MECHANISMS),
        "iterations": fields["iterations"],
    }
    return _there("scram", row)


def _scram_gone(fields: Row) -> Said:
    return Said("scram", (fields["name"], name_of(fields["mechanism"], MECHANISMS)), None)


def _feature(fields: Row) -> Said | None:
    name, level = fields["name"], fields["feature_level"]
    if name == KRAFT_VERSION or (name == METADATA_VERSION and level not in _LEVELS):
        return None
    said = _there("features", {"feature": name, "level": level})
    return said if level else said._replace(state=None)


def _producer_ids(fields: Row) -> Said:
    row = {
        "next_producer_id": fields["next_producer_id"],
        "broker": fields["broker_id"],
        "broker_epoch": fields["broker_epoch"],
    }
    return _there("producer_ids", row)


def _token(fields: Row) -> Said | None:
    who = [*fields["renewers"], fields["owner"], fields["requester"]]
    if any(":" not in each for each in who):
        return None
    row = {
        "token_id": fields["token_id"],
        "owner": fields["owner"],
        "requester": fields["requester"],
        "issue_time": _time(fields["issue_timestamp"]),
        "expiration_time": _time(fields["expiration_timestamp"]),
        "max_time": _time(fields["max_timestamp"]),
        "renewers": fields["renewers"],
    }
    return _there("delegation_tokens", row)


def _time(ms: int) -> int | None:
    return ms * 1000 if -_LAST_MS <= ms <= _LAST_MS else None


def _there(table: str, row: Row) -> Said:
    return Said(table, key_of(table, row), row)


def _gone(table: str, field: str) -> Callable[[Row], Said]:
    return lambda fields: Said(table, (fields[field],), None)


_SAID: Final[dict[str, Callable[[Row], Said | None]]] = {
    "TOPIC_RECORD": _topic,
    "REMOVE_TOPIC_RECORD": _gone("topics", "topic_id"),
    "REGISTER_CONTROLLER_RECORD": _controller,
    "UNREGISTER_CONTROLLER_RECORD": _gone("controllers", "controller_id"),
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _gone("acls", "id"),
    "CLIENT_QUOTA_RECORD": _quota,
    "USER_SCRAM_CREDENTIAL_RECORD": _scram,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _scram_gone,
    "FEATURE_LEVEL_RECORD": _feature,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "DELEGATION_TOKEN_RECORD": _token,
    "REMOVE_DELEGATION_TOKEN_RECORD": _gone("delegation_tokens", "token_id"),
}
SAID_TYPES: Final = frozenset(_SAID)
