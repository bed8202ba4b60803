"""What happens to partitions when brokers come and go: who leads, who is in sync."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

import msgspec

from kraftline.controller.partition_changes import Circumstances, Election, partition_change
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.partition import (
    MIGRATING,
    NO_LEADER,
    UNASSIGNED,
    PartitionRegistration,
)
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.uuids import Uuid

_Looks: TypeAlias = tuple[object, ...]

# Stands for no broker where one may be named.
NOBODY = -1


def is_active(image: MetadataImage, broker: int) -> bool:
    """Whether a broker may be in sync and lead."""
    found = image.cluster.brokers.get(broker)
    return found is not None and not found.fenced and not found.in_controlled_shutdown


def default_directory(image: MetadataImage, broker: int) -> Uuid:
    """Where a broker will keep a new replica, as far as that is known: it is where it has only
    one directory; else the broker will tell."""
    found = image.cluster.brokers.get(broker)
    if found is None or len(found.directories) > 1:
        return UNASSIGNED
    return found.directories[0] if found.directories else MIGRATING


def leads_any(image: MetadataImage, broker: int) -> bool:
    return any(
        partition.leader == broker
        for topic in image.topics.by_id.values()
        for partition in topic.partitions
    )


def after_leaving(image: MetadataImage, configs: TopicConfigs, broker: int) -> Iterator[Versioned]:
    """A broker is fenced or shuts down: it is in sync nowhere and leads nothing."""
    return _updates(image, configs, lambda each: broker in each.isr, removed=broker)


def after_coming(image: MetadataImage, configs: TopicConfigs, broker: int) -> Iterator[Versioned]:
    """A broker is unfenced: partitions that have no leader may have one now."""
    return _updates(image, configs, lambda each: each.leader == NO_LEADER, added=broker)


def after_losing_data(
    image: MetadataImage, configs: TopicConfigs, broker: int
) -> Iterator[Versioned]:
    """A broker registers after it was killed: what it has cannot be trusted to be complete."""
    yield from _updates(image, configs, lambda each: broker in each.isr, lost_data=broker)
    yield from _updates(image, configs, lambda each: broker in each.elr, lost_data=broker)


def after_unregistering(
    image: MetadataImage, configs: TopicConfigs, broker: int
) -> Iterator[Versioned]:
    """A broker is no more: it is neither in sync nor eligible anywhere."""
    yield from _updates(image, configs, lambda each: broker in each.isr, removed=broker)
    yield from _updates(image, configs, lambda each: broker in each.elr, removed=broker)


def after_losing_directories(
    image: MetadataImage, configs: TopicConfigs, broker: int, directories: frozenset[Uuid]
) -> Iterator[Versioned]:
    """Directories of a broker failed: its replicas in them are out of sync."""
    return _updates(
        image,
        configs,
        lambda each: each.directory(broker) in directories,
        removed=broker,
    )


def moved_to(
    image: MetadataImage,
    configs: TopicConfigs,
    topic: TopicImage,
    number: int,
    broker: int,
    directory: Uuid,
) -> Versioned | None:
    """A broker's replica is in another directory than is known; None where it is known."""
    partition = topic.partition(number)
    assert partition is not None
    around = circumstances(image, configs, topic, may_lead_now(image))
    # A leader may come of it, but no election is called for.
    around = msgspec.structs.replace(around, election=Election.ONLINE)
    change = partition_change(partition, around, moved={broker: directory})
    return None if change is None else record_of(change, topic, number, around)


def after_moves(
    image: MetadataImage,
    configs: TopicConfigs,
    broker: int,
    moved: Collection[tuple[Uuid, int]],
) -> Iterator[Versioned]:
    """Replicas of a broker are said to be in a directory that is not there."""
    for topic_id, number in moved:
        topic = image.topics.by_id[topic_id]
        partition = topic.partition(number)
        assert partition is not None
        around = circumstances(image, configs, topic, may_lead_now(image, gone=frozenset({broker})))
        isr = tuple(each for each in partition.isr if each != broker)
        change = partition_change(partition, around, isr=isr)
        if change is not None:
            yield record_of(change, topic, number, around)


def _updates(
    image: MetadataImage,
    configs: TopicConfigs,
    concerns: Callable[[PartitionRegistration], bool],
    *,
    removed: int = NOBODY,
    added: int = NOBODY,
    lost_data: int = NOBODY,
) -> Iterator[Versioned]:
    gone = frozenset({removed, lost_data} - {NOBODY})
    may_lead = may_lead_now(image, gone=gone, added=added)
    # Most partitions are like others: what becomes of one becomes of all that look the same.
    known: dict[_Looks, PartitionChangeRecord | None] = {}
    for topic in sorted(image.topics.by_id.values(), key=lambda topic: topic.name):
        concerned = [(number, each) for number, each in topic.items() if concerns(each)]
        if not concerned:
            continue
        around = circumstances(image, configs, topic, may_lead, lost_data)
        for number, partition in concerned:
            looks = (around.min_isr, around.election, *_looks(partition))
            if looks not in known:
                isr = tuple(each for each in partition.isr if each not in gone)
                known[looks] = partition_change(partition, around, isr=isr)
            change = known[looks]
            if change is not None:
                yield record_of(change, topic, number, around)


def may_lead_now(
    image: MetadataImage, *, gone: Collection[int] = (), added: int = NOBODY
) -> Callable[[int, PartitionRegistration], bool]:
    """Whether a broker may lead a partition, some being gone, and one being there already."""

    def may_lead(broker: int, partition: PartitionRegistration) -> bool:
        if broker in gone or not (broker == added or is_active(image, broker)):
            return False
        registered = image.cluster.brokers.get(broker)
        directory = partition.directory(broker)
        return (
            registered is not None
            and directory is not None
            and registered.has_online_directory(directory)
        )

    return may_lead


def circumstances(
    image: MetadataImage,
    configs: TopicConfigs,
    topic: TopicImage,
    may_lead: Callable[[int, PartitionRegistration], bool],
    lost_data: int = NOBODY,
) -> Circumstances:
    """What changes of a topic's partitions depend on."""
    version = image.features.metadata_version
    assert version is not None
    is_unclean = configs.unclean_elections(image, topic.name)
    return Circumstances(
        version=version,
        has_elr=image.features.elr_enabled,
        min_isr=min(configs.min_isr(image, topic.name), len(topic.partitions[0].replicas)),
        may_lead=may_lead,
        directory_of=lambda broker: default_directory(image, broker),
        election=Election.UNCLEAN if is_unclean else Election.ONLINE,
        lost_data=() if lost_data == NOBODY else (lost_data,),
    )


def record_of(
    change: PartitionChangeRecord, topic: TopicImage, number: int, around: Circumstances
) -> Versioned:
    """A change, of a partition."""
    record = msgspec.structs.replace(change, topic_id=topic.id, partition_id=number)
    return record, around.version.partition_change_record_version


def _looks(partition: PartitionRegistration) -> tuple[object, ...]:
    """Everything that a change depends on: all but the epochs."""
    return (
        partition.replicas,
        partition.directories,
        partition.isr,
        partition.leader,
        partition.leader_recovery_state,
        partition.removing_replicas,
        partition.adding_replicas,
        partition.elr,
        partition.last_known_elr,
    )
