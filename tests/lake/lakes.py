"""Small lakes for tests, written through the commit API: rows by hand, or a real log's images.

Images become rows by comparing each with the one before: slow, plain, and nothing of the code that
is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from kraftline.inspect.cluster.difference import difference
from kraftline.inspect.cluster.health import Health
from kraftline.inspect.history import open_history
from kraftline.lake import names
from kraftline.lake.commit import Writing, writing_to
from kraftline.lake.files import Added, write_file
from kraftline.lake.tables import CLOSED, HEALTH, HISTORY, OPEN, TABLES
from kraftline.metadata.image import EMPTY, MetadataImage
from kraftline.metadata.words import entity_name
from kraftline.metadata.words.security import MECHANISMS
from kraftline.metadata.words.values import is_secret

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]


def write_lake(root: Path, rows: Rows, *, replace: bool = True) -> None:
    """One build that holds these rows, and of other tables what was there."""
    with writing_to(str(root)) as writing:
        for table in rows:
            commit_rows(writing, table, rows[table], replace=replace)
        clusters = {row["cluster_id"]: "{}" for each in rows.values() for row in each}
        writing.finish(clusters=clusters, inputs=["a test"])


def commit_rows(
    writing: Writing, table: str, rows: Sequence[Mapping[str, Any]], *, replace: bool = True
) -> int:
    """Put rows into a table; with `replace` all that their clusters had before goes."""
    own = TABLES[table]
    added = add_files(writing, table, rows)
    clusters = sorted({row["cluster_id"] for row in rows})
    gone = [{"cluster_id": clusters}] if replace and clusters else []
    return writing.commit(table, own.columns, own.partition_by, added, replace=gone)


def add_files(writing: Writing, table: str, rows: Sequence[Mapping[str, Any]]) -> list[Added]:
    own = TABLES[table]

    def partition(row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(row[name] for name in own.partition_by)

    placed = [{**row, **_state(row)} if own.is_history else dict(row) for row in rows]
    return [
        write_file(
            writing.folder(table),
            pa.Table.from_pylist(list(found), own.columns),
            dict(zip(own.partition_by, values, strict=True)),
        )
        for values, found in groupby(sorted(placed, key=partition), key=partition)
    ]


def _state(row: Mapping[str, Any]) -> Row:
    return {"state": OPEN if row.get("valid_to_offset") is None else CLOSED}


def covered(
    cluster: str,
    first: int,
    last: int,
    *,
    leg: int | None = 0,
    how: str = "log",
    times: tuple[int, int] | None = None,
) -> Row:
    """A row of `coverage`; offset N has the time N seconds unless said otherwise."""
    start, end = times or (first * 1000, last * 1000)
    return {
        "cluster_id": cluster,
        "leg": leg,
        "how": how,
        "from_offset": first,
        "to_offset": last + 1,
        "from_time": start * 1000,
        "to_time": end * 1000,
        "committed_to": 0,
    }


def span(first: int, until: int | None = None) -> Row:
    """The validity of a row; offset N has the time N seconds."""
    return {
        "valid_from_offset": first,
        "valid_from_time": first * 1_000_000,
        "valid_to_offset": until,
        "valid_to_time": None if until is None else until * 1_000_000,
        "committed": True,
    }


def lake_of(root: Path, source: Path, cluster: str) -> None:
    """A lake of a metadata directory."""
    write_lake(root, rows_of_log(source, cluster))


def rows_of_log(source: Path, cluster: str) -> dict[str, list[Row]]:
    """Every table of history, changes, health and coverage of a metadata directory's first leg."""
    history = open_history([str(source)])
    leg = history.legs[0]
    offsets = list(range(leg.first_offset, leg.last_offset + 1))
    images = history.in_order(leg, offsets)
    rows = _histories(cluster, zip(offsets, map(leg.time_at, offsets), images, strict=True))
    row = covered(cluster, offsets[0], offsets[-1], times=(leg.first_time, leg.last_time))
    row["committed_to"] = history.committed_below
    return {**rows, "coverage": [row]}


def _histories(
    cluster: str, images: Iterable[tuple[int, int, MetadataImage]]
) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {table.name: [] for table in (*HISTORY, HEALTH)}
    out["changes"] = []
    standing: dict[tuple[str, Any], Row] = {}
    before = EMPTY
    for offset, time, image in images:
        now = _entities(image)
        for key in list(standing):
            if now.get(key) != _said(standing[key]):
                row = standing.pop(key)
                row |= {"valid_to_offset": offset, "valid_to_time": time * 1000}
        for key, said in now.items():
            if key not in standing:
                row = {"cluster_id": cluster, **said, "committed": True}
                row |= {"valid_from_offset": offset, "valid_from_time": time * 1000}
                standing[key] = row
                out[key[0]].append(row)
        out["changes"] += _changes(cluster, offset, time, before, image)
        before = image
    return out


def _said(row: Row) -> Row:
    told = ("cluster_id", "committed")
    return {k: v for k, v in row.items() if k not in told and not k.startswith("valid_")}


def _changes(
    cluster: str, offset: int, time: int, before: MetadataImage, after: MetadataImage
) -> list[Row]:
    return [
        {
            "cluster_id": cluster,
            "offset": offset,
            "time": time * 1000,
            "kind": change.kind,
            "subject": change.subject,
            "topic": change.topic,
            "partition": change.partition,
            "broker": change.brokers[0] if len(change.brokers) == 1 else None,
            "before": None if change.before is None else str(change.before),
            "after": None if change.after is None else str(change.after),
            "cause": change.because,
            "text": change.text,
            "committed": True,
        }
        for change in difference(before, after)
        if not change.minor
    ]


def _entities(image: MetadataImage) -> dict[tuple[str, Any], Row]:
    """All that an image holds: (table, key) and the row's own columns."""
    out: dict[tuple[str, Any], Row] = {}
    health = Health(image)
    for topic in image.topics.by_id.values():
        named = {"topic": topic.name, "topic_id": str(topic.id)}
        out["topics", topic.id] = named
        for number, each in topic.items():
            out["partitions", (topic.id, number)] = {
                **named,
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
                "directories": list(map(str, each.directories)),
            }
            for kind in health.of(topic.name, each):
                out["health", (kind, topic.id, number)] = {
                    **named,
                    "partition": number,
                    "kind": kind,
                    "detail": None,
                }
    for broker in image.cluster.brokers.values():
        cordoned = broker.cordoned_directories
        out["brokers", broker.id] = {
            "broker": broker.id,
            "broker_epoch": broker.epoch,
            "incarnation_id": str(broker.incarnation_id),
            "rack": broker.rack,
            "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "is_migrating_zk_broker": broker.is_migrating_zk_broker,
            **_offered(broker),
            "directories": list(map(str, broker.directories)),
            "cordoned_directories": None if cordoned is None else list(map(str, cordoned)),
        }
    for controller in image.cluster.controllers.values():
        out["controllers", controller.id] = {
            "controller": controller.id,
            "incarnation_id": str(controller.incarnation_id),
            "zk_migration_ready": controller.zk_migration_ready,
            **_offered(controller),
        }
    _settings(image, out)
    _security(image, out)
    return out


def _offered(node: Any) -> Row:
    return {
        "endpoints": [
            {
                "name": each.name,
                "host": each.host,
                "port": each.port,
                "security_protocol": each.security_protocol,
            }
            for each in node.listeners
        ],
        "features": [
            {
                "name": each.name,
                "min_supported_version": each.min_version,
                "max_supported_version": each.max_version,
            }
            for each in node.features
        ],
    }


def _settings(image: MetadataImage, out: dict[tuple[str, Any], Row]) -> None:
    for resource, keys in image.configs.resources.items():
        for name, value in keys.items():
            secret = is_secret(name)
            out["configs", (resource, name)] = {
                "resource_type": names.CONFIG_RESOURCES[resource.type],
                "resource": resource.name,
                "name": name,
                "value": None if secret else value,
                "is_secret": secret,
            }
    for entity, limits in image.client_quotas.entities.items():
        for name, limit in limits.items():
            out["client_quotas", (entity, name)] = {
                "entity": [{"entity_type": kind, "entity_name": who} for kind, who in entity],
                "entity_text": entity_name(entity),
                "key": name,
                "value": limit,
            }
    for name, level in image.features.levels.items():
        out["features", name] = {"feature": name, "level": level}
    version = image.features.metadata_version
    if version is not None:
        name = "metadata.version"
        out["features", name] = {"feature": name, "level": version.level}
    if image.producer_ids.next_producer_id >= 0:
        out["producer_ids", ()] = {
            "next_producer_id": image.producer_ids.next_producer_id,
            "broker": -1,
            "broker_epoch": -1,
        }


def _security(image: MetadataImage, out: dict[tuple[str, Any], Row]) -> None:
    for key, acl in image.acls.acls.items():
        out["acls", key] = {
            "id": str(key),
            "resource_type": names.RESOURCE_TYPES[acl.resource_type],
            "resource": acl.resource_name,
            "pattern_type": names.PATTERN_TYPES[acl.pattern_type],
            "principal": acl.principal,
            "host": acl.host,
            "operation": names.OPERATIONS[acl.operation],
            "permission": names.PERMISSIONS[acl.permission_type],
        }
    for (mechanism, user), credential in image.scram.credentials.items():
        out["scram", (mechanism, user)] = {
            "user": user,
            "mechanism": MECHANISMS[mechanism],
            "iterations": credential.iterations,
        }
    for token_id, token in image.delegation_tokens.tokens.items():
        out["delegation_tokens", token_id] = {
            "token_id": token_id,
            "owner": token.owner,
            "requester": token.requester,
            "issue_time": token.issue_timestamp * 1000,
            "expiration_time": token.expiration_timestamp * 1000,
            "max_time": token.max_timestamp * 1000,
            "renewers": list(token.renewers),
        }
