"""The cluster's image out of a lake's rows: each row becomes the record that a snapshot would have.

Secrets are not in a lake. Where an image wants one, it gets what stands for a hidden value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from kraftline.lake import names, questions, sql
from kraftline.lake.columns import is_time, millis
from kraftline.lake.coverage import Place, Standing
from kraftline.lake.lake import Lake
from kraftline.lake.tables import HISTORY
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.words.security import MECHANISMS
from kraftline.metadata.words.values import HIDDEN
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.metadata.client_quota_record import ClientQuotaRecord, EntityData
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.producer_ids_record import ProducerIdsRecord
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftline.schema.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid

Row: TypeAlias = Mapping[str, Any]


def image_at(lake: Lake, place: Place) -> MetadataImage:
    """The state of one cluster at a place of its log."""
    standing = Standing(None, (place.cluster_id,), (place,))
    delta = MetadataDelta(EMPTY)
    for table in HISTORY:
        for row in _rows(questions.as_of(lake, table.name, standing)):
            delta.replay(_RECORDS[table.name](row))
    offset, time = _moment(lake, place)
    return delta.apply(Provenance(offset, -1, time, False))


def left_out(image: MetadataImage) -> Iterator[str]:
    """What an image of a lake's rows cannot have, in words."""
    if image.scram.credentials:
        yield "salts and keys of SCRAM users"
    if any(HIDDEN in keys.values() for keys in image.configs.resources.values()):
        yield "values of secret configs"


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Times as milliseconds, as records have them."""
    times = {field.name: millis(table[field.name]) for field in table.schema if is_time(field)}
    rows: list[dict[str, Any]] = table.drop_columns(list(times)).to_pylist()
    for at, row in enumerate(rows):
        row.update({name: values[at] for name, values in times.items()})
    return rows


def _moment(lake: Lake, place: Place) -> tuple[int, int]:
    """Offset and time of a place; the log itself tells the one that is not known, -1 if it is not
    in the lake."""
    if place.offset is not None and place.time is not None:
        return place.offset, place.time
    if "records" not in lake.build.versions:
        return (-1 if place.offset is None else place.offset, place.time or -1)
    conditions = [sql.one_of("cluster_id", [place.cluster_id]), "leg IS NOT NULL"]
    if place.offset is not None:
        conditions.append(f"{sql.name('offset')} <= {place.offset}")
    else:
        assert place.time is not None
        conditions.append(f"log_time <= {sql.time(place.time)}")
        if place.within is not None:
            conditions.append(f"{sql.name('offset')} <= {place.within.last_offset}")
    # The last leg counts, be its clock behind that of the one before.
    found = lake.query(
        f"SELECT max({sql.name('offset')}) AS last, max(log_time) AS at FROM records "
        f"WHERE {sql.all_of(conditions)} GROUP BY leg ORDER BY leg DESC LIMIT 1",
        "records",
    )
    rows = _rows(found)
    last, at = (rows[0]["last"], rows[0]["at"]) if rows else (-1, -1)
    return (
        last if place.offset is None else place.offset,
        at if place.time is None else place.time,
    )


def _topic(row: Row) -> Message:
    return TopicRecord(name=row["topic"], topic_id=Uuid.parse(row["topic_id"]))


def _partition(row: Row) -> Message:
    return PartitionRecord(
        partition_id=row["partition"],
        topic_id=Uuid.parse(row["topic_id"]),
        replicas=tuple(row["replicas"]),
        isr=tuple(row["isr"]),
        removing_replicas=tuple(row["removing_replicas"] or ()),
        adding_replicas=tuple(row["adding_replicas"] or ()),
        leader=row["leader"],
        leader_recovery_state=row["leader_recovery_state"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=row["partition_epoch"],
        directories=_ids(row["directories"]),
        eligible_leader_replicas=tuple(row["elr"] or ()),
        last_known_elr=tuple(row["last_known_elr"] or ()),
    )


def _broker(row: Row) -> Message:
    cordoned = row["cordoned_directories"]
    return RegisterBrokerRecord(
        broker_id=row["broker"],
        is_migrating_zk_broker=row["is_migrating_zk_broker"],
        incarnation_id=Uuid.parse(row["incarnation_id"]),
        broker_epoch=row["broker_epoch"],
        end_points=tuple(BrokerEndpoint(**each) for each in row["endpoints"]),
        features=tuple(BrokerFeature(**each) for each in row["features"]),
        rack=row["rack"],
        fenced=row["fenced"],
        in_controlled_shutdown=row["in_controlled_shutdown"],
        log_dirs=_ids(row["directories"]),
        cordoned_log_dirs=None if cordoned is None else _ids(cordoned),
    )


def _controller(row: Row) -> Message:
    return RegisterControllerRecord(
        controller_id=row["controller"],
        incarnation_id=Uuid.parse(row["incarnation_id"]),
        zk_migration_ready=row["zk_migration_ready"],
        end_points=tuple(ControllerEndpoint(**each) for each in row["endpoints"]),
        features=tuple(ControllerFeature(**each) for each in row["features"]),
    )


def _config(row: Row) -> Message:
    return ConfigRecord(
        resource_type=names.number_of(row["resource_type"], names.CONFIG_RESOURCES),
        resource_name=row["resource"],
        name=row["name"],
        value=HIDDEN if row["is_secret"] else row["value"],
    )


def _acl(row: Row) -> Message:
    return AccessControlEntryRecord(
        id=Uuid.parse(row["id"]),
        resource_type=names.number_of(row["resource_type"], names.RESOURCE_TYPES),
        resource_name=row["resource"],
        pattern_type=names.number_of(row["pattern_type"], names.PATTERN_TYPES),
        principal=row["principal"],
        host=row["host"],
        operation=names.number_of(row["operation"], names.OPERATIONS),
        permission_type=names.number_of(row["permission"], names.PERMISSIONS),
    )


def _quota(row: Row) -> Message:
    entity = tuple(EntityData(**each) for each in row["entity"])
    return ClientQuotaRecord(entity=entity, key=row["key"], value=row["value"])


def _scram(row: Row) -> Message:
    return UserScramCredentialRecord(
        name=row["user"],
        mechanism=names.number_of(row["mechanism"], MECHANISMS),
        iterations=row["iterations"],
    )


def _feature(row: Row) -> Message:
    return FeatureLevelRecord(name=row["feature"], feature_level=row["level"])


def _producer_ids(row: Row) -> Message:
    return ProducerIdsRecord(
        broker_id=row["broker"],
        broker_epoch=row["broker_epoch"],
        next_producer_id=row["next_producer_id"],
    )


def _token(row: Row) -> Message:
    return DelegationTokenRecord(
        owner=row["owner"],
        requester=row["requester"],
        renewers=tuple(row["renewers"]),
        issue_timestamp=row["issue_time"],
        max_timestamp=row["max_time"],
        expiration_timestamp=row["expiration_time"],
        token_id=row["token_id"],
    )


def _ids(texts: list[str] | None) -> tuple[Uuid, ...]:
    return tuple(map(Uuid.parse, texts or ()))


_RECORDS: Final[dict[str, Callable[[Row], Message]]] = {
    "topics": _topic,
    "partitions": _partition,
    "brokers": _broker,
    "controllers": _controller,
    "configs": _config,
    "acls": _acl,
    "client_quotas": _quota,
    "scram": _scram,
    "features": _feature,
    "producer_ids": _producer_ids,
    "delegation_tokens": _token,
}
