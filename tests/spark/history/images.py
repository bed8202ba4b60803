"""An image as rows of the history tables, and history as it stood at an offset."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from kraftline.lake.names import (
    CONFIG_RESOURCES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
)
from kraftline.lake.tables import HISTORY, TABLES
from kraftline.metadata.features import METADATA_VERSION
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.registrations import Listener, SupportedFeature
from kraftline.metadata.words.security import MECHANISMS
from kraftline.metadata.words.values import is_secret
from tests.spark.history.staging import Part, Row, Tables

NAMES = tuple(table.name for table in HISTORY)
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(image: MetadataImage) -> dict[str, list[Row]]:
    """What every history table must say while the image holds, without validity."""
    return {
        "topics": [
            {"topic": topic.name, "topic_id": str(topic.id)}
            for topic in image.topics.by_id.values()
        ],
        "partitions": _partitions(image),
        "brokers": _brokers(image),
        "controllers": [
            {
                "controller": each.id,
                "incarnation_id": str(each.incarnation_id),
                "zk_migration_ready": each.zk_migration_ready,
                "endpoints": _endpoints(each.listeners),
                "features": _features(each.features),
            }
            for each in image.cluster.controllers.values()
        ],
        "configs": [
            {
                "resource_type": CONFIG_RESOURCES[resource.type],
                "resource": resource.name,
                "name": key,
                "value": None if is_secret(key) else value,
                "is_secret": is_secret(key),
            }
            for resource, keys in image.configs.resources.items()
            for key, value in keys.items()
        ],
        "client_quotas": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "key": key,
                "value": value,
            }
            for entity, limits in image.client_quotas.entities.items()
            for key, value in limits.items()
        ],
        **_security(image),
        "features": [
            *(
                [{"feature": METADATA_VERSION, "level": image.features.metadata_version.level}]
                if image.features.metadata_version
                else []
            ),
            *({"feature": name, "level": level} for name, level in image.features.levels.items()),
        ],
        "producer_ids": [
            {"next_producer_id": image.producer_ids.next_producer_id}
            for _ in range(image.producer_ids.next_producer_id != -1)
        ],
    }


def _partitions(image: MetadataImage) -> list[Row]:
    return [
        {
            "topic": topic.name,
            "topic_id": str(topic.id),
            "partition": number,
            "leader": each.leader,
            "leader_epoch": each.leader_epoch,
            "partition_epoch": each.partition_epoch,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "adding_replicas": list(each.adding_replicas),
            "removing_replicas": list(each.removing_replicas),
            "leader_recovery_state": each.leader_recovery_state,
            "elr": list(each.elr),
            "last_known_elr": list(each.last_known_elr),
            "directories": [str(directory) for directory in each.directories],
        }
        for topic in image.topics.by_id.values()
        for number, each in topic.items()
    ]


def _brokers(image: MetadataImage) -> list[Row]:
    return [
        {
            "broker": each.id,
            "broker_epoch": each.epoch,
            "incarnation_id": str(each.incarnation_id),
            "rack": each.rack,
            "fenced": each.fenced,
            "in_controlled_shutdown": each.in_controlled_shutdown,
            "is_migrating_zk_broker": each.is_migrating_zk_broker,
            "endpoints": _endpoints(each.listeners),
            "features": _features(each.features),
            "directories": list(map(str, each.directories)),
            "cordoned_directories": None
            if each.cordoned_directories is None
            else list(map(str, each.cordoned_directories)),
        }
        for each in image.cluster.brokers.values()
    ]


def _security(image: MetadataImage) -> dict[str, list[Row]]:
    return {
        "acls": [
            {
                "id": str(key),
                "resource_type": RESOURCE_TYPES[acl.resource_type],
                "resource": acl.resource_name,
                "pattern_type": PATTERN_TYPES[acl.pattern_type],
                "principal": acl.principal,
                "host": acl.host,
                "operation": OPERATIONS[acl.operation],
                "permission": PERMISSIONS[acl.permission_type],
            }
            for key, acl in image.acls.acls.items()
        ],
        "scram": [
            {"user": user, "mechanism": MECHANISMS[mechanism], "iterations": each.iterations}
            for (mechanism, user), each in image.scram.credentials.items()
        ],
        "delegation_tokens": [
            {
                "token_id": key,
                "owner": token.owner,
                "requester": token.requester,
                "issue_time": _time(token.issue_timestamp),
                "expiration_time": _time(token.expiration_timestamp),
                "max_time": _time(token.max_timestamp),
                "renewers": list(token.renewers),
            }
            for key, token in image.delegation_tokens.tokens.items()
        ],
    }


def _endpoints(listeners: Iterable[Listener]) -> list[Row]:
    return [
        {
            "name": each.name,
            "host": each.host,
            "port": each.port,
            "security_protocol": each.security_protocol,
        }
        for each in listeners
    ]


def _features(features: Iterable[SupportedFeature]) -> list[Row]:
    return [
        {
            "name": each.name,
            "min_supported_version": each.min_version,
            "max_supported_version": each.max_version,
        }
        for each in features
    ]


def _time(ms: int) -> datetime:
    return _ZERO + timedelta(milliseconds=ms)


_VALIDITY = ("valid_from_offset", "valid_from_time", "valid_to_offset", "valid_to_time")
_LEFT_OUT = {
    "client_quotas": ("entity_text",),
    # Snapshots do not keep who got the last block, and images neither.
    "producer_ids": ("broker", "broker_epoch"),
}


def as_of(tables: Tables, name: str, offset: int) -> list[Row]:
    """The rows of a table that were true at an offset, without validity."""
    left_out = {"cluster_id", "committed", "state", *_VALIDITY, *_LEFT_OUT.get(name, ())}
    return [
        {key: value for key, value in row.items() if key not in left_out}
        for row in tables[name]
        if row["valid_from_offset"] <= offset
        and (row["valid_to_offset"] is None or offset < row["valid_to_offset"])
    ]


def in_order(rows: Iterable[Row]) -> list[Any]:
    return sorted(rows, key=lambda row: str(sorted(row.items())))


def check_rows(tables: Tables) -> None:
    """Rows of an entity follow one another: none is empty, no two overlap."""
    for name in NAMES:
        spans: dict[str, list[tuple[int, int]]] = {}
        for row in tables[name]:
            until = row["valid_to_offset"]
            assert (until is None) == (row["state"] == "open"), row
            assert until is None or row["valid_from_offset"] < until, row
            key = str([row[key] for key in TABLES[name].keys])
            spans.setdefault(key, []).append((row["valid_from_offset"], until or 1 << 62))
        for found in spans.values():
            found.sort()
            for (_, end), (start, _) in pairwise(found):
                assert end <= start, (name, found)


def compare(part: Part, tables: Tables, offsets: Iterable[int]) -> None:
    """The tables say the same as the images at these offsets."""
    chosen = set(offsets)
    for leg in part.history.legs:
        wanted = sorted({at for at in chosen if leg.first_offset <= at <= leg.last_offset})
        if not wanted:
            continue
        for offset, image in zip(wanted, part.history.in_order(leg, wanted), strict=True):
            expected = rows_of(image)
            for name in NAMES:
                found = in_order(as_of(tables, name, offset))
                assert found == in_order(expected[name]), (part.cluster_id, offset, name)
