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
from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.partition import RECOVERED, PartitionRegistration
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.metadata.words import Change
from kraftline.schema.control.frame import ControlType, control_class
from kraftline.schema.jsonform import from_json
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.changes.by_state import broker, changes_by_state, uuids

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
            for change, name in _changes(what, msgspec.json.decode(text)):
                if not change.minor:
                    taken.append(row)
                    found.append(_columns(change, name))
        moments = batch.select(list(_MOMENT)).take(pa.array(taken, pa.int64()))
        told = pa.RecordBatch.from_pylist(
            found, pa.schema([f for f in TOLD_SCHEMA if f.name not in _MOMENT])
        )
        columns = {name: moments.column(name) for name in _MOMENT}
        columns |= {name: told.column(name) for name in told.schema.names}
        yield pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in TOLD_SCHEMA], schema=TOLD_SCHEMA
        )


def _changes(what: str, said: Said) -> Iterator[tuple[Change, str | None]]:
    """Changes, and the key that they are about where their subject has many."""
    say = _SAY.get(what)
    if say is not None:
        for change in say(said):
            yield change, said.get("feature")
        return
    was, now = (side and side[what] for side in (said["was"], said["now"]))
    known = now or was
    name = next((known[key] for key in ("name", "key", "feature") if key in known), None)
    for change in changes_by_state(what, was, now):
        yield change, name


def _columns(change: Change, name: str | None) -> Said:
    return {
        "kind": change.kind,
        "subject": change.subject,
        "topic": change.topic,
        "partition": change.partition,
        "broker": change.brokers[0] if change.brokers else None,
        "name": name,
        "before": _text(change.before),
        "after": _text(change.after),
        "cause": change.because,
        "text": change.text,
    }


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _feature(said: Said) -> Iterable[Change]:
    change = words.feature_change(said["feature"], said["was"] or None, said["now"])
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
        uuids(directories),
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
    first, last = said["missing_from"], said["gap_offset"]
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
        tuple(map(broker, sides))
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
        # Those of a topic that was there before are told of by themselves.
        is_new = said["topic_was"] is None
        for config in said["configs"] or () if is_new else ():
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
        directories=uuids(each["directories"]),
        eligible_leader_replicas=tuple(each["elr"]),
        last_known_elr=tuple(each["last_known_elr"]),
    )


_SAY: Final[dict[str, Callable[[Said], Iterable[Change]]]] = {
    "feature": _feature,
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
