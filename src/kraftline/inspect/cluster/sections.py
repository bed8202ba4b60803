"""An image in sections, each a list of plain rows: what every format prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from kraftline.inspect.cluster.health import Health
from kraftline.inspect.history import History
from kraftline.inspect.history.quorum import Quorum
from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.partition import NO_LEADER
from kraftline.metadata.words import (
    acl_text,
    endpoints,
    entity_name,
    resource_name,
    voter_endpoints,
)
from kraftline.metadata.words.security import MECHANISMS
from kraftline.metadata.words.values import HIDDEN, is_secret

Row: TypeAlias = dict[str, Any]


class View(msgspec.Struct, frozen=True):
    """What is shown: an image, and the quorum behind it where that is known. Keys, salts and
    passwords only with `secrets`."""

    image: MetadataImage
    quorum: Quorum = Quorum()
    secrets: bool = False


def brokers(view: View) -> list[Row]:
    topics = view.image.topics.by_id.values()
    leads = Counter(each.leader for topic in topics for each in topic.partitions)
    has: Counter[int] = Counter()
    # Lists first: millions of partitions have the same few.
    lists = Counter(each.replicas for topic in topics for each in topic.partitions)
    for replicas, count in lists.items():
        has.update(dict.fromkeys(replicas, count))
    return [
        {
            "broker": number,
            "state": _state(broker.fenced, broker.in_controlled_shutdown),
            "rack": broker.rack,
            "epoch": broker.epoch,
            "incarnation": str(broker.incarnation_id),
            "endpoints": endpoints(broker.listeners),
            "leads": leads[number],
            "replicas": has[number],
            "directories": [str(each) for each in broker.directories],
            "cordoned": [str(each) for each in broker.cordoned_directories or ()],
        }
        for number, broker in sorted(view.image.cluster.brokers.items())
    ]


def _state(fenced: bool, stopping: bool) -> str:
    if fenced:
        return "fenced, shut down" if stopping else "fenced"
    return "shutting down" if stopping else "in service"


def controllers(view: View) -> list[Row]:
    return [
        {
            "controller": number,
            "incarnation": str(controller.incarnation_id),
            "endpoints": endpoints(controller.listeners),
        }
        for number, controller in sorted(view.image.cluster.controllers.items())
    ]


def features(view: View) -> list[Row]:
    rows: list[Row] = []
    version = view.image.features.metadata_version
    if version is not None:
        rows.append({"feature": METADATA_VERSION, "level": version.level, "name": version.name})
    levels = dict(view.image.features.levels)
    if view.quorum.kraft_version:
        levels[KRAFT_VERSION] = view.quorum.kraft_version
    for name, level in sorted(levels.items()):
        rows.append({"feature": name, "level": level, "name": None})
    return rows


def voters(view: View) -> list[Row]:
    return [
        {
            "voter": voter.voter_id,
            "directory": str(voter.voter_directory_id),
            "endpoints": voter_endpoints(voter),
        }
        for voter in view.quorum.voters
    ]


def topics(view: View) -> Iterator[Row]:
    health = Health(view.image)
    for topic in sorted(view.image.topics.by_id.values(), key=lambda each: each.name):
        factors = sorted({len(each.replicas) for each in topic.partitions})
        found = Counter(
            trouble for each in topic.partitions for trouble in health.of(topic.name, each)
        )
        yield {
            "topic": topic.name,
            "id": str(topic.id),
            "partitions": len(topic.partitions),
            "replicas": factors[0] if len(factors) == 1 else factors,
            "min_isr": health.min_isr(topic.name),
            "leaders": sorted({each.leader for each in topic.partitions}),
            "troubles": dict(found),
        }


def partitions(view: View) -> Iterator[Row]:
    health = Health(view.image)
    for topic in sorted(view.image.topics.by_id.values(), key=lambda each: each.name):
        yield from topic_partitions(topic, health)


def topic_partitions(topic: TopicImage, health: Health) -> Iterator[Row]:
    for number, each in topic.items():
        yield {
            "topic": topic.name,
            "partition": number,
            "leader": None if each.leader == NO_LEADER else each.leader,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "elr": list(each.elr),
            "last_known_elr": list(each.last_known_elr),
            "adding": list(each.adding_replicas),
            "removing": list(each.removing_replicas),
            "directories": [str(directory) for directory in each.directories],
            "leader_epoch": each.leader_epoch,
            "partition_epoch": each.partition_epoch,
            "troubles": list(health.of(topic.name, each)),
        }


def troubles(view: View) -> list[Row]:
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "leader": (None if each.registration.leader == NO_LEADER else each.registration.leader),
            "replicas": list(each.registration.replicas),
            "isr": list(each.registration.isr),
            "elr": list(each.registration.elr),
            "down": list(each.down),
            "troubles": list(each.troubles),
        }
        for each in Health(view.image).all()
    ]


def configs(view: View) -> list[Row]:
    return [
        {
            "resource": resource_name(resource),
            "key": key,
            "value": HIDDEN if is_secret(key) and not view.secrets else value,
        }
        for resource, keys in sorted(view.image.configs.resources.items(), key=lambda each: each[0])
        for key, value in sorted(keys.items())
    ]


def quotas(view: View) -> list[Row]:
    rows = [
        {"entity": entity_name(entity), "key": key, "value": value}
        for entity, limits in view.image.client_quotas.entities.items()
        for key, value in limits.items()
    ]
    return sorted(rows, key=lambda row: (str(row["entity"]), str(row["key"])))


def acls(view: View) -> list[Row]:
    rows = [
        {
            "principal": acl.principal,
            "acl": acl_text(acl),
            "id": str(key),
        }
        for key, acl in view.image.acls.acls.items()
    ]
    return sorted(rows, key=lambda row: (row["principal"], row["acl"], row["id"]))


def scram(view: View) -> list[Row]:
    rows = []
    for (mechanism, user), credential in sorted(view.image.scram.credentials.items()):
        rows.append(
            {
                "user": user,
                "mechanism": MECHANISMS.get(mechanism, str(mechanism)),
                "iterations": credential.iterations,
                "salt": credential.salt.hex() if view.secrets else HIDDEN,
                "stored_key": credential.stored_key.hex() if view.secrets else HIDDEN,
                "server_key": credential.server_key.hex() if view.secrets else HIDDEN,
            }
        )
    return sorted(rows, key=lambda row: (str(row["user"]), str(row["mechanism"])))


def tokens(view: View) -> list[Row]:
    return [
        {
            "token": key if view.secrets else HIDDEN,
            "owner": token.owner,
            "requester": token.requester,
            "renewers": list(token.renewers),
            "issued": token.issue_timestamp,
            "expires": token.expiration_timestamp,
            "longest": token.max_timestamp,
        }
        for key, token in sorted(view.image.delegation_tokens.tokens.items())
    ]


def producer_ids(view: View) -> list[Row]:
    next_id = view.image.producer_ids.next_producer_id
    return [] if next_id < 0 else [{"next_producer_id": next_id}]


# Of a million partitions, rows are made as they are asked for.
SECTIONS: Final[dict[str, Callable[[View], Iterable[Row]]]] = {
    "features": features,
    "voters": voters,
    "controllers": controllers,
    "brokers": brokers,
    "topics": topics,
    "troubles": troubles,
    "partitions": partitions,
    "configs": configs,
    "quotas": quotas,
    "acls": acls,
    "scram": scram,
    "tokens": tokens,
    "producer-ids": producer_ids,
}
# The names in each row: what a table without rows is headed with.
COLUMNS: Final[dict[str, str]] = {
    "features": "feature level name",
    "voters": "voter directory endpoints",
    "controllers": "controller incarnation endpoints",
    "brokers": "broker state rack epoch incarnation endpoints leads replicas directories cordoned",
    "topics": "topic id partitions replicas min_isr leaders troubles",
    "troubles": "topic partition leader replicas isr elr down troubles",
    "partitions": "topic partition leader replicas isr elr last_known_elr adding removing "
    "directories leader_epoch partition_epoch troubles",
    "configs": "resource key value",
    "quotas": "entity key value",
    "acls": "principal acl id",
    "scram": "user mechanism iterations salt stored_key server_key",
    "tokens": "token owner requester renewers issued expires longest",
    "producer-ids": "next_producer_id",
}


def as_of(image: MetadataImage, history: History) -> Row:
    """Of which moment an image is, and what its history can answer for."""
    where = image.provenance
    return {
        "offset": where.last_offset,
        "epoch": where.last_epoch,
        "time": where.last_log_time_ms,
        "committed_below": history.committed_below,
        "ranges": [
            {
                "first_offset": leg.first_offset,
                "last_offset": leg.last_offset,
                "first_time": leg.first_time,
                "last_time": leg.last_time,
                "complete": leg.complete,
            }
            for leg in history.legs
        ],
    }
