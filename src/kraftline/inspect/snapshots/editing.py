"""Edits to records, as a controller would have decided them, and those to another image."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from kraftline.inspect.cluster.difference import difference
from kraftline.inspect.snapshots.brokers import Orphan, Removal, Unclean, remove_replicas
from kraftline.inspect.snapshots.config_checks import bad_value, unknown_key
from kraftline.inspect.snapshots.edits import DeleteTopic, Edit, RemoveBroker, SetConfig
from kraftline.inspect.snapshots.quorum import replace_voters
from kraftline.inspect.snapshots.refusal import Refused
from kraftline.inspect.snapshots.source import State
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.metadata.voters import InitialVoter
from kraftline.metadata.words import Change
from kraftline.metadata.words.values import plural
from kraftline.schema.metadata.clear_elr_record import ClearElrRecord
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.unregister_broker_record import UnregisterBrokerRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.storage.names import SnapshotId

_NAMED = 20
_MIN_ISR = "min.insync.replicas"


class Edited(msgspec.Struct, frozen=True):
    """The state to be written, and how it differs from the one before."""

    state: State
    changes: tuple[Change, ...]
    quorum: tuple[str, ...] = ()


def edit_state(
    state: State,
    edits: Sequence[Edit],
    *,
    voters: Sequence[InitialVoter] | None = None,
    listener: str | None = None,
    delete_orphans: bool = False,
    unclean: bool = False,
) -> Edited:
    """The state after all edits; Refused, with every reason, where one cannot be.

    It gets a leader epoch of its own, above the log's: nodes that still have the old log then see
    that theirs is not this one, and fetch the snapshot.
    """
    before = state.image
    records, notes = _decide(before, edits, delete_orphans, unclean)
    said: tuple[str, ...] = ()
    kraft_version, after_voters = state.kraft_version, state.voters
    if voters is not None:
        quorum = replace_voters(state, voters, listener)
        records += quorum.records
        said, notes = quorum.changes, [*notes, *quorum.notes]
        kraft_version, after_voters = max(kraft_version, 1), quorum.voters
    delta = MetadataDelta(before)
    for record in records:
        delta.replay(record)
    image = delta.apply(before.provenance)
    after = msgspec.structs.replace(
        state,
        image=image,
        id=SnapshotId(state.id.end_offset, max(state.id.epoch, state.election) + 1),
        kraft_version=kraft_version,
        voters=after_voters,
        notes=(*state.notes, *notes),
    )
    return Edited(after, tuple(difference(before, image)), said)


def _decide(
    image: MetadataImage, edits: Sequence[Edit], delete_orphans: bool, unclean: bool
) -> tuple[list[Message], list[str]]:
    problems: list[str] = []
    notes: list[str] = []
    deleted = {
        topic.id: topic.name
        for edit in edits
        if isinstance(edit, DeleteTopic)
        if (topic := image.topics.named(edit.name)) is not None
    }
    brokers = list(dict.fromkeys(edit.id for edit in edits if isinstance(edit, RemoveBroker)))
    removal = remove_replicas(image, brokers, deleted) if brokers else Removal()
    if delete_orphans:
        _delete_orphans(image, removal, deleted, notes)
    for edit in edits:
        problem = _problem(image, edit, set(deleted.values()))
        if problem is not None:
            problems.append(problem)
    if problems:
        raise Refused("nothing was written:", list(dict.fromkeys(problems)))
    _check_losses(removal, delete_orphans, unclean)
    records: list[Message] = [
        change for change in removal.changes if change.topic_id not in deleted
    ]
    for broker in brokers:
        registered = image.cluster.brokers.get(broker)
        if registered is not None:
            records.append(UnregisterBrokerRecord(broker_id=broker, broker_epoch=registered.epoch))
        if image.configs.of(BROKER, str(broker)):
            notes.append(
                f"the configs of broker {broker} stay, as they do in Kafka, for one that comes "
                "back under that id"
            )
        if broker in image.cluster.controllers:
            notes.append(f"node {broker} is a controller too, and stays one")
    for edit in edits:
        if isinstance(edit, SetConfig):
            records += _config(image, edit)
            doubt = unknown_key(edit)
            notes += [] if doubt is None else [doubt]
    records += [RemoveTopicRecord(topic_id=topic) for topic in deleted]
    return records, notes


def _problem(image: MetadataImage, edit: Edit, deleted: set[str]) -> str | None:
    match edit:
        case DeleteTopic(name=name):
            if image.topics.named(name) is None:
                return f"there is no topic {name}{_close(name, image)}"
        case RemoveBroker(id=broker):
            if broker not in image.cluster.brokers and not _has_replicas(image, broker):
                known = ", ".join(map(str, sorted(image.cluster.brokers))) or "none"
                return f"there is no broker {broker} (registered: {known}), nor a replica on it"
        case SetConfig(resource=resource, key=key, value=value):
            if resource.type == TOPIC and resource.name in deleted:
                return f"topic {resource.name} is to be deleted: it cannot have {key}"
            if resource.type == TOPIC and image.topics.named(resource.name) is None:
                # Configs that Kafka left behind may be removed, and no others set.
                left = key in image.configs.of(TOPIC, resource.name)
                if value is not None or not left:
                    return f"there is no topic {resource.name}{_close(resource.name, image)}"
            if value is None and key not in image.configs.of(resource.type, resource.name):
                return f"{key} is not set on {resource.name or 'all brokers'}"
            return bad_value(edit)
    return None


def _config(image: MetadataImage, edit: SetConfig) -> list[Message]:
    kind, name = edit.resource
    records: list[Message] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=edit.key, value=edit.value)
    ]
    if edit.key == _MIN_ISR and image.features.elr_enabled and image.topics.ids:
        # Who is eligible depends on it; a controller forgets them when it changes.
        if kind == TOPIC and image.topics.named(name) is not None:
            records.append(ClearElrRecord(topic_name=name))
        elif kind == BROKER and not name:
            records.append(ClearElrRecord(topic_name=""))
    return records


def _delete_orphans(
    image: MetadataImage, removal: Removal, deleted: dict[Uuid, str], notes: list[str]
) -> None:
    """Partitions cannot go one by one: their numbers have no gaps. So the topic goes."""
    lost: dict[Uuid, list[Orphan]] = {}
    for orphan in removal.orphans:
        lost.setdefault(orphan.topic_id, []).append(orphan)
    for topic_id, orphans in lost.items():
        name, total = orphans[0].topic, len(image.topics.by_id[topic_id].partitions)
        deleted[topic_id] = name
        if len(orphans) < total:
            notes.append(
                f"topic {name} goes whole, with {plural(total - len(orphans), 'partition')} that "
                "other brokers have replicas of"
            )
    removal.unclean = [each for each in removal.unclean if each.topic not in deleted.values()]


def _check_losses(removal: Removal, delete_orphans: bool, unclean: bool) -> None:
    if removal.orphans and not delete_orphans:
        raise Refused(
            f"no other broker has {plural(len(removal.orphans), 'partition')}, so the records "
            "would be gone:",
            _listed([f"{each.topic}-{each.partition}" for each in removal.orphans]),
            "--delete-orphans deletes their topics; to keep them, bring the broker back and move "
            "them first.",
        )
    if removal.unclean and not unclean:
        raise Refused(
            f"no other broker in sync has {plural(len(removal.unclean), 'partition')}, so records "
            "may be lost:",
            _listed([_unclean(each) for each in removal.unclean]),
            "--unclean lets a replica lead that is not in sync.",
        )


def _unclean(each: Unclean) -> str:
    others = ", ".join(map(str, each.others))
    return f"{each.topic}-{each.partition}: others {others}; {each.choice} would lead"


def _listed(items: list[str]) -> list[str]:
    more = len(items) - _NAMED
    return [*items[:_NAMED], f"and {more} more"] if more > 0 else items


def _has_replicas(image: MetadataImage, broker: int) -> bool:
    return any(
        broker in partition.replicas
        for topic in image.topics.by_id.values()
        for partition in topic.partitions
    )


def _close(name: str, image: MetadataImage) -> str:
    close = difflib.get_close_matches(name, list(image.topics.ids), 1)
    return f"; did you mean {close[0]}?" if close else ""
