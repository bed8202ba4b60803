"""The tables of a lake: their columns, and what identifies a row. `docs/tables.md` tells of them.

History tables say when each row was true: from an offset of the metadata log (included) to another
(excluded; null while it still is), and the same as times. A time is that of the log: the highest
timestamp of any batch so far, so it never goes back.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec import Struct

LAYOUT: Final = 1  # of the lake as a whole; a reader refuses another one

TIME: Final = pa.timestamp("us", tz="UTC")
_INTS = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())

OPEN: Final = "open"  # rows that are still true: replaced by every build
CLOSED: Final = "closed"  # rows that will never change: only ever added


class Table(Struct, frozen=True):
    """`keys` name the entity within its cluster; `partition_by` are columns that are folders."""

    name: str
    columns: pa.Schema
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]

    @property
    def is_history(self) -> bool:
        """Does it have rows that open and close?"""
        return "state" in self.partition_by


def _fields(columns: dict[str, pa.DataType]) -> list[pa.Field]:
    return [pa.field(name, kind) for name, kind in columns.items()]


_VALIDITY = {
    "valid_from_offset": pa.int64(),
    "valid_from_time": TIME,
    "valid_to_offset": pa.int64(),
    "valid_to_time": TIME,
    "committed": pa.bool_(),  # is valid_from below the end of the newest snapshot?
    "state": pa.string(),
}


def _history(name: str, keys: tuple[str, ...], columns: dict[str, pa.DataType]) -> Table:
    fields = _fields({"cluster_id": pa.string(), **columns, **_VALIDITY})
    return Table(name, pa.schema(fields), keys, ("cluster_id", "state"))


def _plain(name: str, keys: tuple[str, ...], columns: dict[str, pa.DataType]) -> Table:
    fields = _fields({"cluster_id": pa.string(), **columns})
    return Table(name, pa.schema(fields), keys, ("cluster_id",))


_ENDPOINTS = pa.list_(
    pa.struct(
        _fields(
            {
                "name": pa.string(),
                "host": pa.string(),
                "port": pa.int32(),
                "security_protocol": pa.int16(),
            }
        )
    )
)
_FEATURES = pa.list_(
    pa.struct(
        _fields(
            {
                "name": pa.string(),
                "min_supported_version": pa.int16(),
                "max_supported_version": pa.int16(),
            }
        )
    )
)
_ENTITY = pa.list_(pa.struct(_fields({"entity_type": pa.string(), "entity_name": pa.string()})))

TOPICS: Final = _history("topics", ("topic_id",), {"topic": pa.string(), "topic_id": pa.string()})

PARTITIONS: Final = _history(
    "partitions",
    ("topic_id", "partition"),
    {
        "topic": pa.string(),
        "topic_id": pa.string(),
        "partition": pa.int32(),
        "leader": pa.int32(),
        "leader_epoch": pa.int32(),
        "partition_epoch": pa.int32(),
        "replicas": _INTS,
        "isr": _INTS,
        "adding_replicas": _INTS,
        "removing_replicas": _INTS,
        "leader_recovery_state": pa.int8(),
        "elr": _INTS,
        "last_known_elr": _INTS,
        "directories": _TEXTS,
    },
)

BROKERS: Final = _history(
    "brokers",
    ("broker",),
    {
        "broker": pa.int32(),
        "broker_epoch": pa.int64(),
        "incarnation_id": pa.string(),
        "rack": pa.string(),
        "fenced": pa.bool_(),
        "in_controlled_shutdown": pa.bool_(),
        "is_migrating_zk_broker": pa.bool_(),
        "endpoints": _ENDPOINTS,
        "features": _FEATURES,
        "directories": _TEXTS,
        "cordoned_directories": _TEXTS,
    },
)

CONTROLLERS: Final = _history(
    "controllers",
    ("controller",),
    {
        "controller": pa.int32(),
        "incarnation_id": pa.string(),
        "zk_migration_ready": pa.bool_(),
        "endpoints": _ENDPOINTS,
        "features": _FEATURES,
    },
)

CONFIGS: Final = _history(
    "configs",
    ("resource_type", "resource", "name"),
    {
        "resource_type": pa.string(),  # topic, broker, broker-logger, client-metrics, group
        "resource": pa.string(),  # "" is the default of the cluster
        "name": pa.string(),
        "value": pa.string(),  # null where is_secret: the value of a secret is never kept
        "is_secret": pa.bool_(),
    },
)

ACLS: Final = _history(
    "acls",
    ("id",),
    {
        "id": pa.string(),
        "resource_type": pa.string(),
        "resource": pa.string(),
        "pattern_type": pa.string(),
        "principal": pa.string(),
        "host": pa.string(),
        "operation": pa.string(),
        "permission": pa.string(),
    },
)

CLIENT_QUOTAS: Final = _history(
    "client_quotas",
    ("entity_text", "key"),
    {
        "entity": _ENTITY,  # by type; a null name is the default
        "entity_text": pa.string(),
        "key": pa.string(),
        "value": pa.float64(),
    },
)

SCRAM: Final = _history(
    "scram",
    ("user", "mechanism"),
    {"user": pa.string(), "mechanism": pa.string(), "iterations": pa.int32()},
)

FEATURES: Final = _history("features", ("feature",), {"feature": pa.string(), "level": pa.int16()})

PRODUCER_IDS: Final = _history(
    "producer_ids",
    (),
    {"next_producer_id": pa.int64(), "broker": pa.int32(), "broker_epoch": pa.int64()},
)

DELEGATION_TOKENS: Final = _history(
    "delegation_tokens",
    ("token_id",),
    {
        "token_id": pa.string(),
        "owner": pa.string(),
        "requester": pa.string(),
        "issue_time": TIME,
        "expiration_time": TIME,
        "max_time": TIME,
        "renewers": _TEXTS,
    },
)

HEALTH: Final = _history(
    "health",
    ("kind", "topic_id", "partition", "broker"),
    {
        "kind": pa.string(),
        "topic": pa.string(),
        "topic_id": pa.string(),
        "partition": pa.int32(),
        "broker": pa.int32(),
        "detail": pa.string(),
    },
)

CHANGES: Final = _plain(
    "changes",
    ("offset",),
    {
        "offset": pa.int64(),  # where it took effect
        "time": TIME,
        "epoch": pa.int32(),
        "kind": pa.string(),  # the code that `kraftline changes` prints
        "subject": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "broker": pa.int32(),
        "name": pa.string(),  # of a config, feature, quota key
        "before": pa.string(),
        "after": pa.string(),
        "cause": pa.string(),
        "text": pa.string(),  # the sentence
        "committed": pa.bool_(),
    },
)

GROUPS: Final = _history(
    "groups",
    ("group",),
    {
        "group": pa.string(),
        "kind": pa.string(),  # classic, consumer, share, streams
        "epoch": pa.int32(),  # generation of a classic group
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "leader": pa.string(),
        "members": pa.int32(),
        "group_state": pa.string(),
    },
)

GROUP_OFFSETS: Final = _history(
    "group_offsets",
    ("group", "topic", "partition"),
    {
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "committed_offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "commit_time": TIME,
        "log_end_offset": pa.int64(),  # at commit_time; null where no segment says
        "lag": pa.int64(),
    },
)

TOPIC_SIZES: Final = _plain(
    "topic_sizes",
    ("topic", "partition", "node", "base_offset"),
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "node": pa.int32(),
        "base_offset": pa.int64(),
        "end_offset": pa.int64(),
        "records": pa.int64(),
        "bytes": pa.int64(),
        "first_time": TIME,
        "last_time": TIME,
        "file": pa.string(),
    },
)

COVERAGE: Final = _plain(
    "coverage",
    ("from_offset",),
    {
        "leg": pa.int32(),  # contiguous stretches are numbered; null for a gap
        # log, snapshot, gap, or unbased: records are there, but no state to start from
        "how": pa.string(),
        "from_offset": pa.int64(),
        "to_offset": pa.int64(),  # excluded
        "from_time": TIME,
        "to_time": TIME,
        "committed_to": pa.int64(),
        "source": pa.string(),
    },
)

QUARANTINE: Final = _plain(
    "quarantine",
    ("file", "from_position"),
    {
        "file": pa.string(),
        "kind": pa.string(),  # damage, conflict, unreadable, unknown
        "from_position": pa.int64(),
        "to_position": pa.int64(),
        "from_offset": pa.int64(),
        "to_offset": pa.int64(),
        "reason": pa.string(),
    },
)

HISTORY: Final = (
    TOPICS,
    PARTITIONS,
    BROKERS,
    CONTROLLERS,
    CONFIGS,
    ACLS,
    CLIENT_QUOTAS,
    SCRAM,
    FEATURES,
    PRODUCER_IDS,
    DELEGATION_TOKENS,
)
TABLES: Final = {
    table.name: table
    for table in (
        *HISTORY,
        HEALTH,
        CHANGES,
        GROUPS,
        GROUP_OFFSETS,
        TOPIC_SIZES,
        COVERAGE,
        QUARANTINE,
    )
}
