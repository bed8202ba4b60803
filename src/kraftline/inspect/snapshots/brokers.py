"""Taking a broker out of a cluster: what becomes of the partitions it has replicas of.

Kafka unregisters a broker and leaves its replicas where they are, for a reassignment to move.
Without a running cluster nobody moves them, so here they go with it, and a partition is left as
a controller that starts from it needs it to be: a leader that is in sync and was in service, or
none, and then the first replica in sync that comes back is elected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionRegistration,
    Replicas,
)
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.uuids import Uuid


class Orphan(msgspec.Struct, frozen=True):
    """A partition with no other replica."""

    topic: str
    topic_id: Uuid
    partition: int


class Unclean(msgspec.Struct, frozen=True):
    """A partition whose other replicas may all lack records; `choice` is who would lead it."""

    topic: str
    partition: int
    others: Replicas
    choice: int


class Removal(msgspec.Struct):
    """`changes` hold for all partitions but orphans; those of `unclean` ones lose records."""

    changes: list[PartitionChangeRecord] = []
    orphans: list[Orphan] = []
    unclean: list[Unclean] = []


def remove_replicas(
    image: MetadataImage, brokers: Collection[int], skip: Collection[Uuid] = ()
) -> Removal:
    """What must happen to every partition that has one of the brokers in some list; topics in
    `skip` go anyway."""

    def serves(replica: int) -> bool:
        found = image.cluster.brokers.get(replica)
        return replica not in brokers and found is not None and not found.fenced

    out = Removal()
    gone = frozenset(brokers)
    for topic in sorted(image.topics.by_id.values(), key=lambda topic: (topic.name, topic.id)):
        if topic.id in skip:
            continue
        for number, partition in topic.items():
            if gone.isdisjoint(partition.replicas) and gone.isdisjoint(_others(partition)):
                continue
            if gone.issuperset(partition.replicas):
                out.orphans.append(Orphan(topic.name, topic.id, number))
                continue
            change, unclean = _change(partition, gone, serves)
            out.changes.append(
                msgspec.structs.replace(change, topic_id=topic.id, partition_id=number)
            )
            if unclean is not None:
                replicas = change.replicas or partition.replicas
                out.unclean.append(Unclean(topic.name, number, replicas, unclean))
    return out


def _others(partition: PartitionRegistration) -> Replicas:
    return (
        *partition.isr,
        *partition.elr,
        *partition.last_known_elr,
        *partition.adding_replicas,
        *partition.removing_replicas,
        partition.leader,
    )


def _change(
    partition: PartitionRegistration, gone: frozenset[int], serves: Callable[[int], bool]
) -> tuple[PartitionChangeRecord, int | None]:
    """The change; with the replica that an unclean election would take, if that is the only way."""

    def left(replicas: Replicas) -> Replicas:
        return tuple(each for each in replicas if each not in gone)

    replicas, isr, elr = left(partition.replicas), left(partition.isr), left(partition.elr)
    removing, adding = left(partition.removing_replicas), left(partition.adding_replicas)
    if set(replicas) <= set(removing):
        removing = ()  # what the move was to end at is gone: the replicas stay
    leader, state, unclean = partition.leader, -1, None
    if not isr and not elr:
        unclean = next((r for r in (*left(partition.last_known_elr), *replicas) if serves(r)), None)
        unclean = replicas[0] if unclean is None else unclean
        isr, state = (unclean,), RECOVERING
    if leader in gone or leader not in isr:
        # Out of the eligible ones a controller elects by itself when one is back.
        leader = next((r for r in replicas if r in isr and serves(r)), NO_LEADER)
    same = leader == partition.leader
    change = PartitionChangeRecord(
        replicas=_changed(replicas, partition.replicas),
        directories=(
            None
            if replicas == partition.replicas
            else tuple(
                where
                for each, where in zip(partition.replicas, partition.directories, strict=True)
                if each not in gone
            )
        ),
        isr=_changed(isr, partition.isr),
        leader=NO_LEADER_CHANGE if same and unclean is None else leader,
        leader_recovery_state=state,
        removing_replicas=_changed(removing, partition.removing_replicas),
        adding_replicas=_changed(adding, partition.adding_replicas),
        eligible_leader_replicas=_changed(elr, partition.elr),
        last_known_elr=_changed(left(partition.last_known_elr), partition.last_known_elr),
    )
    return change, unclean


def _changed(after: Replicas, before: Replicas) -> Replicas | None:
    return None if after == before else after
