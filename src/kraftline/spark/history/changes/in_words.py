"""What was gathered, said by `metadata.words`: rows of JSON in, changes out. Runs in tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow as pa
from immutables import Map

from kraftline.inspect.cluster.difference import difference
from kraftline.lake.tables import TIME
from kraftline.metadata import words
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.image.configs import TOPIC, ConfigResource
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential
from kraftline.metadata.partition import RECOVERED, PartitionRegistration
from kraftline.metadata.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Listener,
    SupportedFeature,
)
from kraftline.metadata.words import Change
from kraftline.metadata.words.security import MECHANISMS
from kraftline.schema.control.frame import ControlType, control_class
from kraftline.schema.jsonform import from_json
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.codes import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    number_of,
)
from kraftline.spark.history.configs import RESOURCES

TOLD_SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("leg", pa.int32()),
        pa.field("at_offset", pa.int64()),
        pa.field("at_time", TIME),
        pa.field("epoch", pa.int32()),
        pa.field("kind", pa.string()),
        pa.field("subject", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("broker", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("cause", pa.string()),
        pa.field("text", pa.string()),
    ]
)
_MOMENT: Final = ("cluster_id", "leg", "at_offset", "at_time", "epoch")
Said = dict[str, Any]


def in_words(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: from GATHERED to TOLD. Bookkeeping is left out."""
    for batch in batches:
        taken: list[int] = []
        found: list[Said] = []
        said = zip(batch.column("what").to_pylist(), batch.column("said").to_pylist(), strict=True)
        for row, (what, text) in enumerate(said):
            thing = msgspec.json.decode(text)
            for change in _SAY[what](thing):
                if not change.minor:
                    taken.append(row)
                    found.append(_columns(change, thing))
        moments = batch.select(list(_MOMENT)).take(pa.array(taken, pa.int64()))
        told = pa.RecordBatch.from_pylist(
            found, pa.schema([f for f in TOLD_SCHEMA if f.name not in _MOMENT])
        )
        columns = {name: moments.column(name) for name in _MOMENT}
        columns |= {name: told.column(name) for name in told.schema.names}
        yield pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in TOLD_SCHEMA], schema=TOLD_SCHEMA
        )


def _columns(change: Change, said: Said) -> Said:
    return {
        "kind": change.kind,
        "subject": change.subject,
        "topic": change.topic,
        "partition": change.partition,
        "broker": change.brokers[0] if change.brokers else None,
        # Of a config, a quota, a feature: the key that its owner has many of.
        "name": said.get("name") or said.get("key") or said.get("feature"),
        "before": _text(change.before),
        "after": _text(change.after),
        "cause": change.because,
        "text": change.text,
    }


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _broker(said: Said) -> Iterable[Change]:
    number = said["broker"]
    return words.broker_changes(
        number, _registration(number, said["was"]), _registration(number, said["now"])
    )


def _registration(number: int, state: Said | None) -> BrokerRegistration | None:
    if state is None:
        return None
    cordoned = state["cordoned_directories"]
    return BrokerRegistration(
        id=number,
        epoch=state["broker_epoch"],
        incarnation_id=Uuid.parse(state["incarnation_id"]),
        listeners=_listeners(state),
        features=_features(state),
        rack=state["rack"],
        fenced=state["fenced"],
        in_controlled_shutdown=state["in_controlled_shutdown"],
        is_migrating_zk_broker=state["is_migrating_zk_broker"],
        directories=_uuids(state["directories"]),
        cordoned_directories=None if cordoned is None else _uuids(cordoned),
    )


def _listeners(state: Said) -> tuple[Listener, ...]:
    names = ("name", "host", "port", "security_protocol")
    return tuple(Listener(*(each[name] for name in names)) for each in state["endpoints"])


def _features(state: Said) -> tuple[SupportedFeature, ...]:
    names = ("name", "min_supported_version", "max_supported_version")
    return tuple(SupportedFeature(*(each[name] for name in names)) for each in state["features"])


def _uuids(texts: Iterable[str]) -> tuple[Uuid, ...]:
    return tuple(map(Uuid.parse, texts))


def _controller(said: Said) -> Iterable[Change]:
    number = said["controller"]

    def state(found: Said | None) -> ControllerRegistration | None:
        if found is None:
            return None
        return ControllerRegistration(
            id=number,
            incarnation_id=Uuid.parse(found["incarnation_id"]),
            zk_migration_ready=found["zk_migration_ready"],
            listeners=_listeners(found),
            features=_features(found),
        )

    return words.controller_changes(number, state(said["was"]), state(said["now"]))


def _config(said: Said) -> Iterable[Change]:
    kind = number_of(said["resource_type"], RESOURCES)
    was, now = said["was"], said["now"]
    if said["is_secret"]:
        # The values are not kept; all that counts is that they are, and are not the same.
        was = "before" if said["was_there"] else None
        now = "after" if said["there"] else None
    change = words.config_change(ConfigResource(kind, said["resource"]), said["name"], was, now)
    return [] if change is None else [change]


def _feature(said: Said) -> Iterable[Change]:
    change = words.feature_change(said["feature"], said["was"] or None, said["now"])
    return [] if change is None else [change]


def _quota(said: Said) -> Iterable[Change]:
    entity = tuple((each["entity_type"], each["entity_name"]) for each in said["entity"])
    change = words.quota_change(entity, said["key"], _number(said["was"]), _number(said["now"]))
    return [] if change is None else [change]


def _number(value: float | str | None) -> float | None:
    # JSON has no infinity: Spark writes it as text.
    return None if value is None else float(value)


def _acl(said: Said) -> Iterable[Change]:
    def acl(found: Said | None) -> Acl | None:
        if found is None:
            return None
        return Acl(
            number_of(found["resource_type"], RESOURCE_TYPES),
            found["resource"],
            number_of(found["pattern_type"], PATTERN_TYPES),
            found["principal"],
            found["host"],
            number_of(found["operation"], OPERATIONS),
            number_of(found["permission"], PERMISSIONS),
        )

    return words.acl_changes(acl(said["was"]), acl(said["now"]))


def _scram(said: Said) -> Iterable[Change]:
    def credential(iterations: int | None, salt: bytes) -> ScramCredential | None:
        return None if iterations is None else ScramCredential(salt, b"", b"", iterations)

    user = (number_of(said["mechanism"], MECHANISMS), said["user"])
    change = words.scram_change(
        user, credential(said["was"], b"before"), credential(said["now"], b"after")
    )
    return [] if change is None else [change]


def _token(said: Said) -> Iterable[Change]:
    def token(found: Said | None) -> DelegationToken | None:
        if found is None:
            return None
        return DelegationToken(
            said["token_id"],
            found["owner"],
            found["requester"],
            tuple(found["renewers"]),
            found["issue_time"],
            found["max_time"],
            found["expiration_ms"],
        )

    change = words.token_change(token(said["was"]), token(said["now"]))
    return [] if change is None else [change]


def _topic_created(said: Said) -> Iterable[Change]:
    configs = {each["name"]: each["value"] or "" for each in said["configs"] or ()}
    change = words.topic_created(said["topic"], Uuid.parse(said["topic_id"]), _shape(said), configs)
    return [msgspec.structs.replace(change, after=_count(said))]


def _topic_deleted(said: Said) -> Iterable[Change]:
    topic_id = Uuid.parse(said["topic_id"])
    return [words.topic_deleted(said["topic"], topic_id, _shape(said))]


def _count(said: Said) -> Said:
    return {"topic_id": said["topic_id"], "partitions": len(_shape(said))}


def _shape(said: Said) -> dict[int, PartitionRegistration]:
    """Partitions of which nothing counts but how many replicas they have."""
    return {
        each["partition"]: _partition(replicas=range(each["factor"]))
        for each in said["factors"] or ()
    }


def _partitions_added(said: Said) -> Iterable[Change]:
    first, count = said["first"], said["count"]
    # Only where it is a single one does it matter which.
    numbers = range(first["partition"], first["partition"] + count)
    added = {number: _partition(replicas=first["replicas"]) for number in numbers}
    change = words.partitions_added(said["topic"], added, said["total"])
    return [msgspec.structs.replace(change, after={"partitions": said["total"]})]


_OF_LISTS: Final = ("reassignment.", "replicas.", "elr.", "directory.")


def _partition_changed(said: Said) -> Iterable[Change]:
    """What is rare; leaders and ISRs are told elsewhere."""

    def state(lists: Said, isr: list[int], leader: int) -> PartitionRegistration:
        return _partition(
            replicas=lists["replicas"],
            isr=isr,
            leader=leader,
            adding=lists["adding_replicas"],
            removing=lists["removing_replicas"],
            elr=lists["elr"],
            last_known_elr=lists["last_known_elr"],
            directories=lists["directories"],
        )

    changes = words.partition_changes(
        said["topic"],
        said["partition"],
        state(said["was"], said["was_isr"], said["before_leader"]),
        state(said["now"], said["isr"], said["leader"]),
    )
    return [change for change in changes if change.kind.startswith(_OF_LISTS)]


def _partition(
    *,
    replicas: Iterable[int],
    isr: Iterable[int] = (),
    leader: int = 0,
    adding: Iterable[int] = (),
    removing: Iterable[int] = (),
    elr: Iterable[int] = (),
    last_known_elr: Iterable[int] = (),
    directories: Iterable[str] = (),
) -> PartitionRegistration:
    return PartitionRegistration(
        tuple(replicas),
        _uuids(directories),
        tuple(isr),
        leader,
        0,
        0,
        RECOVERED,
        tuple(removing),
        tuple(adding),
        tuple(elr),
        tuple(last_known_elr),
    )


def _control(said: Said) -> Iterable[Change]:
    message = from_json(
        control_class(ControlType[said["type"]]), msgspec.json.decode(said["payload"]), 0
    )
    change = words.log_change(message, said["epoch"])
    return [] if change is None else [change]


def _migration(said: Said) -> Iterable[Change]:
    change = words.log_change(ZkMigrationStateRecord(zk_migration_state=said["state"]), 0)
    return [] if change is None else [change]


def _transaction(said: Said) -> Iterable[Change]:
    why = f"aborted: {said['reason'] or 'no reason given'}"
    return [words.transaction_change(said["name"], said["count"], why)]


def _gap(said: Said) -> Iterable[Change]:
    first, last = said["first"], said["last"]
    text = (
        f"offsets {first} to {last} are missing from the log; until here this has changed, in an "
        "unknown order:"
    )
    return [Change(kind="log.gap", subject="log", text=text, before=first, after=last)]


def _topic_over_gap(said: Said) -> Iterable[Change]:
    """The difference of two images that have nothing but this topic, and the brokers for causes."""
    brokers = _brokers(said["brokers"])
    sides = [
        _image(said, side, tuple(pair[at] for pair in brokers))
        for at, side in enumerate(("was", "now"))
    ]
    found = difference(sides[0], sides[1])
    return [change for change in found if not change.kind.startswith("broker.")]


@lru_cache(16)
def _brokers(text: str | None) -> tuple[tuple[BrokerRegistration | None, ...], ...]:
    pairs = msgspec.json.decode(text or "[]")
    return tuple(
        tuple(None if each is None else _registration(each["broker"], each) for each in sides)
        for sides in ((pair.get("was"), pair.get("now")) for pair in pairs)
    )


def _image(said: Said, side: str, brokers: tuple[BrokerRegistration | None, ...]) -> MetadataImage:
    delta = MetadataDelta(
        MetadataImage(cluster=ClusterImage(Map({each.id: each for each in brokers if each})))
    )
    name = said[f"topic_{side}"]
    if name is not None:
        topic_id = Uuid.parse(said["topic_id"])
        delta.replay(TopicRecord(name=name, topic_id=topic_id))
        for each in said[f"partitions_{side}"] or ():
            delta.replay(_whole(topic_id, each))
        for config in said["configs"] or () if side == "now" else ():
            # With a value that is not kept, since it would not be shown either.
            value = config["value"] if not config["is_secret"] else "hidden"
            record = ConfigRecord(
                resource_type=TOPIC, resource_name=name, name=config["name"], value=value
            )
            delta.replay(record)
    return delta.apply(Provenance())


def _whole(topic_id: Uuid, each: Said) -> PartitionRecord:
    return PartitionRecord(
        partition_id=each["partition"],
        topic_id=topic_id,
        replicas=tuple(each["replicas"]),
        isr=tuple(each["isr"]),
        removing_replicas=tuple(each["removing_replicas"]),
        adding_replicas=tuple(each["adding_replicas"]),
        leader=each["leader"],
        leader_recovery_state=each["leader_recovery_state"],
        leader_epoch=each["leader_epoch"],
        partition_epoch=each["partition_epoch"],
        directories=_uuids(each["directories"]),
        eligible_leader_replicas=tuple(each["elr"]),
        last_known_elr=tuple(each["last_known_elr"]),
    )


_SAY: Final[dict[str, Callable[[Said], Iterable[Change]]]] = {
    "broker": _broker,
    "controller": _controller,
    "config": _config,
    "feature": _feature,
    "quota": _quota,
    "acl": _acl,
    "scram": _scram,
    "token": _token,
    "topic created": _topic_created,
    "topic deleted": _topic_deleted,
    "partitions added": _partitions_added,
    "partition": _partition_changed,
    "control": _control,
    "migration": _migration,
    "transaction": _transaction,
    "gap": _gap,
    "topic over a gap": _topic_over_gap,
}
